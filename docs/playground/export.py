"""A BERT classifier or encoder as one ONNX file in which heads are seen and disabled, compared with PyTorch.

Inputs of the file: ``input_ids``, (1, tokens), without padding, and ``token_type_ids`` where the
tokenizer gives them; ``off``, (variants, layers, heads), 1 where a head is disabled; ``zero``, one
number: 1 for zero ablation, 0 for attention of 1/L. All variants of a text go through in one run.
Outputs: ``weights`` and ``norms`` (:mod:`bertology_utils.attention`), (variants, layers,
heads, tokens, tokens), and ``answer``, a classifier's logits, (variants, labels).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from ml_dtypes import int4
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from torch import nn
from transformers import AutoModelForSequenceClassification

from bertology_utils import attention_maps, batches_of, load_encoder, load_tokenizer, predict_logits
from bertology_utils.attention import by_norm, head_factors
from bertology_utils.cache import write_atomically
from bertology_utils.disabling import disable_heads, replacement

MAX_TOKENS = 128
ABLATIONS = ("uniform", "zero")
OUTPUTS = ("weights", "norms", "answer")
FARTHEST = 1e-3  # from PyTorch, of weights, norms and probabilities
LARGE = 1_000  # numbers of a matrix that is stored in fewer than 32 bits each
BLOCK = 32  # numbers that share a scale where there are 4 bits for each
OPSET = 21  # the first with 4-bit integers
# A capital sigma at a word's end gets another small letter in JavaScript; it splits at U+FEFF, which Python does
# not know either, as it does not know U+E000; it does not split at U+0085.
ALIKE = (("\u03a3", "\u03c3"), ("\ufeff", "\ue000"), ("\u0085", " "))
EXAMPLES: list[Any] = [
    "The story never loses its way.",
    "She gave him the book, but he did not read it.",
    ("The play was long.", "We loved it."),
]


class Heads(nn.Module):
    """The model's own layers, with attention written out, so that it can be seen and changed.

    Args:
        model: a BertModel or a BertForSequenceClassification.
    """

    def __init__(self, model: Any):
        super().__init__()
        self.model, self.encoder = model, model.base_model
        self.heads = model.config.num_attention_heads
        for number, layer in enumerate(self.encoder.encoder.layer):
            factors = head_factors(layer.attention.output.dense.weight, self.heads)
            self.register_buffer(f"factors_{number}", factors.transpose(1, 2).contiguous())

    def forward(self, off, zero, input_ids, token_type_ids=None):
        """See the module."""
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        hidden = self.encoder.embeddings(input_ids=input_ids, token_type_ids=types)
        uniform, silent = off * (1 - zero), off * zero
        maps, norms = [], []
        for number, layer in enumerate(self.encoder.encoder.layer):
            own = layer.attention.self
            query, key, value = (  # (variants, heads, tokens, head size)
                part(hidden).unflatten(2, (self.heads, -1)).transpose(1, 2)
                for part in (own.query, own.key, own.value)
            )
            scores = query @ key.transpose(2, 3) * query.shape[3] ** -0.5
            disabled, no_output = (part[:, number, :, None, None] for part in (uniform, silent))
            weights = torch.softmax(scores, dim=3) * (1 - disabled) + disabled / input_ids.shape[1]
            context = (weights @ value * (1 - no_output)).transpose(1, 2).flatten(2)
            hidden = layer.attention.output(context, hidden)
            hidden = layer.output(layer.intermediate(hidden), hidden)
            lengths = (value @ self.get_buffer(f"factors_{number}")).square().sum(dim=3).sqrt()
            maps.append(weights)
            norms.append(by_norm(weights, lengths))
        is_encoder = self.encoder is self.model
        answer = hidden[:, 0] if is_encoder else self.model.classifier(self.encoder.pooler(hidden))
        return torch.stack(maps, dim=1), torch.stack(norms, dim=1), answer


def load(folder: Path) -> tuple[Any, Any]:
    """The model of a folder, a classifier if its configuration says so, and its tokenizer.

    Raises:
        ValueError: there is no model, or one of another architecture than BERT's.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder.name} holds no model: config.json: {error}") from None
    if config.get("model_type") != "bert":
        raise ValueError(
            f"{folder.name} is a model of type {config.get('model_type')!r}; the playground shows BERT's"
            " (model_type bert), encoders and classifiers"
        )
    if "Classification" not in config.get("architectures", [""])[0]:
        return load_encoder(str(folder)), load_tokenizer(str(folder))
    options = {"use_safetensors": True, "attn_implementation": "eager", "dtype": torch.float32}
    model = AutoModelForSequenceClassification.from_pretrained(folder, **options)
    return model.eval(), load_tokenizer(str(folder))


def inputs_of(tokenizer: Any) -> tuple[str, ...]:
    """Names of what the tokenizer gives the model, without the mask: there is no padding."""
    names = ("input_ids", "token_type_ids")
    return tuple(name for name in names if name in tokenizer.model_input_names)


def traced(model: Any, texts: tuple[str, ...], longest: int) -> onnx.ModelProto:
    """The file's content, all numbers in 32 bits; ``texts`` are the inputs of :func:`inputs_of`."""
    # A tensor each: of one that is given twice the exporter makes one input.
    ids = [torch.ones(1, 7, dtype=torch.int64) for _ in texts]
    off = torch.zeros(3, model.config.num_hidden_layers, model.config.num_attention_heads)
    tokens = torch.export.Dim("tokens", min=2, max=longest)
    variants = torch.export.Dim("variants", min=1, max=1024)
    shapes = [{0: variants}, {}, *({1: tokens} for _ in texts)]
    program = torch.onnx.export(
        Heads(model).eval(),
        (off, torch.zeros(1), *ids),
        dynamo=True,
        opset_version=OPSET,
        optimize=False,  # which would multiply the factors of LowRank out
        verbose=False,
        dynamic_shapes=shapes,
        input_names=["off", "zero", *texts],
        output_names=OUTPUTS,
    )
    content = program.model_proto
    del content.metadata_props[:], content.graph.value_info[:]
    for node in content.graph.node:  # where in this machine's files each came from
        del node.metadata_props[:]
        node.doc_string = ""
    return content


class LowRank(nn.Module):
    """A weight as the sum of itself and a product of two narrow factors (LoRA), for torch's ``parametrize``."""

    def __init__(self, b: torch.Tensor, a: torch.Tensor):
        super().__init__()
        self.b, self.a = nn.Parameter(b), nn.Parameter(a)

    def forward(self, weight):
        """See the class."""
        return weight + self.b @ self.a


def pack(content: onnx.ModelProto) -> None:
    """Store large matrices in fewer bits, in place; runtimes unpack them when they load the file.

    A matrix takes 4 bits for each number where this loses nothing. All others become 16-bit
    integers with a scale for each row, with a third of the error of 16-bit floats.
    """
    graph, tensors, steps = content.graph, [], []
    for tensor in graph.initializer:
        array, name = numpy_helper.to_array(tensor), tensor.name
        if array.dtype != np.float32 or array.ndim != 2 or array.size < LARGE:
            tensors.append(tensor)
            continue
        parts, options = four_bits(array), {"axis": 1, "block_size": BLOCK}
        if parts is None:
            scales = np.maximum(np.abs(array).max(axis=1) / np.iinfo(np.int16).max, 1e-12)
            parts = np.round(array / scales[:, None]).astype(np.int16), scales
            options = {"axis": 0}
        integers, scales, single = (f"{name}_{part}" for part in ("integers", "scales", "single"))
        tensors += map(numpy_helper.from_array, parts, (integers, scales))
        steps += [
            helper.make_node("Cast", [scales], [single], to=TensorProto.FLOAT),
            helper.make_node("DequantizeLinear", [integers, single], [name], **options),
        ]
    steps += graph.node
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(tensors)
    graph.node.extend(steps)


def four_bits(array: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Integers and scales of a matrix in which 32 neighbours are integers from -8 to 7 times a scale, the largest -8 times.

    Returns:
        4-bit integers in the matrix's shape; scales, (rows, blocks), 16-bit floats. None of any other matrix.
    """
    if array.shape[1] % BLOCK:
        return None
    blocks = array.reshape(-1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    scales = (largest / -8).astype(np.float16)
    single = scales.astype(np.float32)
    integers = np.clip(np.round(blocks / np.where(single, single, 1)), -8, 7)
    if (integers * single != blocks).any():
        return None
    return integers.astype(int4).reshape(array.shape), scales.reshape(len(array), -1)


def by_pytorch(model: Any, tokenizer: Any, text: Any, off: np.ndarray, ablation: str) -> dict:
    """What the page must show: the package's own maps, norms and logits, by "weights", "norms" and "answer".

    Args:
        model, tokenizer: see :func:`load`.
        text: a sentence, or a pair.
        off: the disabled heads, shape (layers, heads).
        ablation: one of :data:`ABLATIONS`.
    """
    (batch,) = batches_of([text], tokenizer, max_length=MAX_TOKENS)
    with disable_heads(model, np.argwhere(off), replacement(model, [batch], ablation)):
        found = {
            f"{way}s": torch.cat(attention_maps(model, batch, way)).numpy()
            for way in ("weight", "norm")
        }
        if model.base_model is not model:
            found["answer"] = predict_logits(model, [batch])[0]
    return found


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis; a single output as it is."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) if logits.shape[-1] > 1 else logits


def opened(path: Path) -> onnxruntime.InferenceSession:
    """The file, its weights unpacked once and not in every run."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(path, options)


def answers_of(session: Any, batch: Any, off: np.ndarray, ablation: str) -> dict[str, np.ndarray]:
    """What the file says of one text with several sets of disabled heads, (variants, layers, heads)."""
    texts = {one.name for one in session.get_inputs()} - {"off", "zero"}
    given = {name: batch.inputs[name].numpy() for name in texts} | {
        "off": off.astype(np.float32),
        "zero": np.array([ablation == "zero"], np.float32),
    }
    return dict(zip(OUTPUTS, session.run(OUTPUTS, given), strict=True))


def farthest(session: Any, model: Any, tokenizer: Any, texts: Sequence[Any]) -> float:
    """Largest difference of weights, norms and probabilities from PyTorch's, with some heads disabled."""
    shape = model.config.num_hidden_layers, model.config.num_attention_heads
    sets = np.zeros((4, *shape))  # none, one head, some of them, a layer
    sets[1, -1, 0] = sets[3, shape[0] // 2] = 1
    sets[2] = np.random.default_rng(0).random(shape) < 0.3
    largest = 0.0
    for text in texts:
        (batch,) = batches_of([text], tokenizer, max_length=MAX_TOKENS)
        for ablation in ABLATIONS:
            found = answers_of(session, batch, sets, ablation)
            for place, off in enumerate(sets):
                for name, wanted in by_pytorch(model, tokenizer, text, off, ablation).items():
                    pair = found[name][place], wanted
                    one, other = map(probabilities, pair) if name == "answer" else pair
                    largest = max(largest, float(np.abs(one - other).max()))
    return largest


def first_of(session: Any, model: Any, tokenizer: Any, text: Any) -> dict[str, Any]:
    """What the page shows before its model is there: the first example, with all heads and without each."""
    (batch,) = batches_of([text], tokenizer, max_length=MAX_TOKENS)
    ids = batch.inputs["input_ids"][0].tolist()
    shape = model.config.num_hidden_layers, model.config.num_attention_heads
    each = np.eye(np.prod(shape)).reshape(-1, 1, *shape)
    whole = answers_of(session, batch, 0 * each[0], "uniform")
    first = {name: one.ravel() for name, one in whole.items()}
    first["without"] = [answers_of(session, batch, one, "uniform")["answer"][0] for one in each]
    rounded = {name: np.round(one, 4).tolist() for name, one in first.items()}
    return {"ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids), **rounded}


def rules_of(tokenizer: Any) -> str:
    """The tokenizer's rules for the page, whose tokens are then Python's: without padding and cuts.

    A few characters are others to JavaScript; where Python gives an equal one the same tokens, that
    takes their place. And ideographs are split once more, since JavaScript's rules see none of two UTF-16 units.
    """
    rules = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    rules.no_padding()
    rules.no_truncation()
    alike = [
        pair for pair in ALIKE if len({tuple(rules.encode(f"a{one}b").ids) for one in pair}) == 1
    ]
    own = [rules.normalizer] if rules.normalizer else []
    rules.normalizer = normalizers.Sequence([normalizers.Replace(*pair) for pair in alike] + own)
    if rules.normalizer.normalize_str("\U00020000") == " \U00020000 ":
        han = "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
        split = pre_tokenizers.Split(Regex(f"[{han}]"), "isolated")
        rules.pre_tokenizer = pre_tokenizers.Sequence([split, rules.pre_tokenizer])
    return rules.to_str()


def export(model: Any, tokenizer: Any, target: Path, first: Any = EXAMPLES[0]) -> dict[str, Any]:
    """Write model.onnx and tokenizer.json into a folder; returns what the page has to know of the model.

    Args:
        model, tokenizer: see :func:`load`.
        target: the folder.
        first: the sentence, or pair, that the page shows before its model is there.

    Raises:
        ValueError: the file does not say what PyTorch says.
    """
    config, path = model.config, target / "model.onnx"
    longest = min(MAX_TOKENS, config.max_position_embeddings)
    content = traced(model, inputs_of(tokenizer), longest)
    pack(content)
    write_atomically(path, content.SerializeToString())
    session = opened(path)
    if (largest := farthest(session, model, tokenizer, ["a", first, *EXAMPLES[1:]])) > FARTHEST:
        raise ValueError(f"what was exported differs by {largest:.1e} from PyTorch")
    megabytes = path.stat().st_size / 1e6
    print(f"{megabytes:.0f} MB; {largest:.1e} from PyTorch at most", flush=True)
    write_atomically(target / "tokenizer.json", rules_of(tokenizer).encode())
    classes = config.num_labels if model.base_model is not model and config.num_labels > 1 else 0
    return {
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "longest": longest,
        "examples": [first, *EXAMPLES[1:]],
        "labels": [str(config.id2label[number]) for number in range(classes)],
        "special": [tokenizer.cls_token, tokenizer.sep_token, tokenizer.unk_token],
        "unknown": tokenizer.unk_token_id,
        "texts": inputs_of(tokenizer),
        "bytes": path.stat().st_size,
        "first": first_of(session, model, tokenizer, first),
    }
