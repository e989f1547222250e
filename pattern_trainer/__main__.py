"""Cross-validate, train the network that the package ships, keep both, say how it went: ``python -m pattern_trainer``."""

from bertology_utils.patterns.labels import load_maps, natural, targets
from bertology_utils.patterns.validation import CANDIDATES, best_candidate, f1_scores, load_judges

from . import SEED, nested, save, train, write_rounds

labelled = load_maps()
rounds = {kind: nested(labelled, kind, SEED) for kind in CANDIDATES}
design = best_candidate("cnn", rounds["cnn"])
save(train([one.picture for one in labelled], targets(labelled), design, SEED))
write_rounds(rounds, SEED)
for name, found in load_judges().items():
    f1 = f1_scores(found, SEED)
    print(f"{name}: micro F1 {f1['micro F1'].text(1, 3)}, macro F1 {f1['macro F1'].text(1, 3)}")
print(f"shipped: {design}; natural part: {natural().sum()} of {len(labelled)} maps")
