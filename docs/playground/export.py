"""A BERT classifier or encoder as one ONNX file in which heads are seen and disabled, compared with PyTorch.

Inputs of the file: ``input_ids`` and ``token_type_ids``, (1, tokens), without padding; ``off``,
(variants, layers, heads), 1 where a head is disabled; ``zero``, one number: 1 for zero ablation, 0
for attention of 1/L. All variants of a text go through in one run. Outputs: ``weights`` and
``norms`` (:mod:`bertology_utils.attention.norms`), (variants, layers, heads, tokens, tokens), and
``answer``, a classifier's logits, (variants, labels).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from transformers import AutoModelForSequenceClassification

from bertology_utils import attention_maps, batches_of, load_encoder, load_tokenizer, predict_logits
from bertology_utils.attention.norms import by_norm, head_factors
from bertology_utils.cache import write_atomically
from bertology_utils.disabling.masking import disabled, replacement

MAX_TOKENS = 128
ABLATIONS = ("uniform", "zero")
INPUTS, OUTPUTS = ("input_ids", "token_type_ids", "off", "zero"), ("weights", "norms", "answer")
FARTHEST = 1e-3  # from PyTorch, of weights, norms and probabilities
LARGE = 10_000  # numbers of a matrix that is stored in 16 bits each
EXAMPLES: list[Any] = [
    "The staff is neither shabby nor unwelcoming.",
    "The story was really awful.",
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

    def forward(self, input_ids, token_type_ids, off, zero):
        """See the module."""
        hidden = self.encoder.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
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


def traced(model: Any, longest: int) -> onnx.ModelProto:
    """The file's content, all numbers in 32 bits."""
    # Two tensors: of one that is given twice the exporter makes one input.
    ids, types = (torch.ones(1, 7, dtype=torch.int64) for _ in range(2))
    off = torch.zeros(3, model.config.num_hidden_layers, model.config.num_attention_heads)
    tokens = torch.export.Dim("tokens", min=2, max=longest)
    shapes = {name: {1: tokens} for name in INPUTS[:2]}
    shapes |= {"off": {0: torch.export.Dim("variants", min=1, max=1024)}, "zero": {}}
    options = {"dynamic_shapes": shapes, "input_names": INPUTS, "output_names": OUTPUTS}
    example = ids, types, off, torch.zeros(1)
    program = torch.onnx.export(Heads(model).eval(), example, dynamo=True, verbose=False, **options)
    content = program.model_proto
    del content.metadata_props[:], content.graph.value_info[:]
    for node in content.graph.node:  # where in this machine's files each came from
        del node.metadata_props[:]
        node.doc_string = ""
    return content


def halved(content: onnx.ModelProto) -> onnx.ModelProto:
    """The same with large matrices as 16-bit integers, each row or column with a scale; a runtime unpacks them once.

    Of rows and columns those are scaled which leaves the smaller error: a third of that of 16-bit
    floats.
    """
    made = onnx.ModelProto()
    made.CopyFrom(content)
    del made.graph.initializer[:], made.graph.node[:]

    def stored(array: np.ndarray, name: str) -> str:
        made.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    for tensor in content.graph.initializer:
        array, name = numpy_helper.to_array(tensor), tensor.name
        if array.dtype != np.float32 or array.size < LARGE or array.ndim != 2:
            made.graph.initializer.append(tensor)
            continue
        ways = []
        for axis in (0, 1):
            largest = np.abs(array).max(axis=axis, keepdims=True)
            scale = np.maximum(largest / np.iinfo(np.int16).max, 1e-12)
            integers = np.round(array / scale).astype(np.int16)
            ways.append((np.square(scale * integers - array).sum(), scale, integers))
        _, scale, integers = min(ways, key=lambda way: way[0])
        given, single = stored(integers, f"{name}_integers"), f"{name}_single"
        cast = helper.make_node("Cast", [given], [single], to=TensorProto.FLOAT)
        unpack = helper.make_node("Mul", [single, stored(scale, f"{name}_scale")], [name])
        made.graph.node.extend([cast, unpack])
    made.graph.node.extend(content.graph.node)
    return made


def by_pytorch(model: Any, tokenizer: Any, text: Any, off: np.ndarray, ablation: str) -> dict:
    """What the page must show: the package's own maps, norms and logits, by "weights", "norms" and "answer".

    Args:
        model, tokenizer: see :func:`load`.
        text: a sentence, or a pair.
        off: the disabled heads, shape (layers, heads).
        ablation: one of :data:`ABLATIONS`.
    """
    (batch,) = batches_of([text], tokenizer, max_length=MAX_TOKENS)
    with disabled(model, np.argwhere(off), replacement(model, [batch], ablation)):
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


def farthest(path: Path, model: Any, tokenizer: Any) -> float:
    """Largest difference of weights, norms and probabilities from PyTorch's, in some texts with some heads disabled."""
    session = onnxruntime.InferenceSession(path)
    shape = model.config.num_hidden_layers, model.config.num_attention_heads
    sets = np.zeros((4, *shape), np.float32)  # none, one head, some of them, a layer
    sets[1, -1, 0] = sets[3, shape[0] // 2] = 1
    sets[2] = np.random.default_rng(0).random(shape) < 0.3
    largest = 0.0
    for text in ("a", *EXAMPLES[2:]):
        (batch,) = batches_of([text], tokenizer)
        given = {name: batch.inputs[name].numpy() for name in INPUTS[:2]} | {"off": sets}
        for ablation in ABLATIONS:
            zero = np.array([ablation == "zero"], np.float32)
            found = dict(zip(OUTPUTS, session.run(OUTPUTS, given | {"zero": zero}), strict=True))
            for place, off in enumerate(sets):
                for name, wanted in by_pytorch(model, tokenizer, text, off, ablation).items():
                    pair = found[name][place], wanted
                    one, other = map(probabilities, pair) if name == "answer" else pair
                    largest = max(largest, float(np.abs(one - other).max()))
    return largest


def export(folder: Path, target: Path) -> dict[str, Any]:
    """Write model.onnx and tokenizer.json into a folder; returns what the page has to know of the model.

    Raises:
        ValueError: see :func:`load`; or the file does not say what PyTorch says.
    """
    model, tokenizer = load(folder)
    config, path = model.config, target / "model.onnx"
    longest = min(MAX_TOKENS, config.max_position_embeddings)
    size = sum(part.numel() for part in model.parameters()) * 2
    print(f"the page's model takes about {size / 1e6:.0f} MB, which every reader loads", flush=True)
    write_atomically(path, halved(traced(model, longest)).SerializeToString())
    if (largest := farthest(path, model, tokenizer)) > FARTHEST:
        raise ValueError(f"what was exported differs by {largest:.1e} from PyTorch")
    print(f"{path.stat().st_size / 1e6:.1f} MB; {largest:.1e} from PyTorch at most", flush=True)
    rules = tokenizer.backend_tokenizer
    rules.no_padding()
    rules.no_truncation()
    write_atomically(target / "tokenizer.json", rules.to_str().encode())
    classes = config.num_labels if model.base_model is not model else 0
    return {
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "longest": longest,
        "examples": EXAMPLES,
        "labels": [str(config.id2label[number]) for number in range(classes)],
        "bytes": path.stat().st_size,
    }
