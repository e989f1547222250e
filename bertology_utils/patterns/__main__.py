"""``python -m bertology_utils.patterns``: cross-validate, then train the network that the package ships.

Takes about a quarter of an hour on two CPU cores and rewrites
``cnn.safetensors`` and ``validation.json`` beside this file.
"""

from . import cnn, evidence, labelled_maps, validation
from .augment import picture

SEED = 1


def main() -> None:
    """Do both, and say how it went."""
    labelled = labelled_maps.load_maps()
    rounds = {
        "baseline": validation.nested(labelled, validation.fit_baseline, validation.BASELINE_CANDIDATES, SEED),
        "cnn": validation.nested(labelled, validation.fit_cnn, validation.CNN_CANDIDATES, SEED),
    }
    design = validation.best_candidate(rounds["cnn"], validation.CNN_CANDIDATES)
    cnn.save(cnn.train(list(map(picture, labelled)), validation.targets(labelled), design, SEED))
    evidence.write(rounds, SEED)
    for kind in evidence.KINDS:
        found = evidence.load_evidence(kind)
        print(
            f"{kind}: micro F1 {found.resampled(validation.micro_f1, SEED).text(1, 3)},"
            f" macro F1 {found.resampled(validation.macro_f1, SEED).text(1, 3)}, n={len(found.true)} maps"
        )
    print(f"shipped: {design}")


if __name__ == "__main__":
    main()
