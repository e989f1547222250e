"""Cross-validate, train the network that the package ships, keep both, say how it went: ``python -m pattern_trainer``."""

from bertology_utils.patterns.classifiers import f1_scores, named_maps
from bertology_utils.patterns.labels import indices, load_maps, pictures

from . import (
    CANDIDATES,
    NETWORK,
    REGRESSION,
    SEED,
    cross_validate,
    fit_regression,
    save_network,
    save_validation,
    train,
)

labelled = load_maps()
maps, patterns = pictures(labelled), indices(labelled["pattern"])
validated = {kind: cross_validate(labelled, kind, SEED) for kind in CANDIDATES}
design, strength = validated[NETWORK][1], validated[REGRESSION][1]
save_network(train(maps, patterns, design, SEED))
predicted = {kind: predictions for kind, (predictions, _) in validated.items()}
save_validation(predicted, fit_regression(maps, patterns, strength))
for kind in CANDIDATES:
    f1 = f1_scores(named_maps(), kind, SEED)
    print(f"{kind}: micro F1 {f1['micro F1'].text(1, 3)}, macro F1 {f1['macro F1'].text(1, 3)}")
print(f"shipped: {design}, and a regression with the inverse penalty {strength:g}")
