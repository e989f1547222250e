"""Small classifiers with random weights, one of each architecture that the package knows, each with a tokenizer."""

from functools import cache, partial

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as splits
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from bertology_utils import Batch, e5
from bertology_utils.settings import embedded_folder

LAYERS, HEADS, HIDDEN = 3, 4, 32
NAMES = "BERT,RoBERTa,ELECTRA,DistilBERT,ALBERT,multilingual BERT,ModernBERT,E5,MiniLM".split(",")
FAST = (
    "BERT",
    "RoBERTa",
    "ELECTRA",
    "multilingual BERT",
    "E5",
    "MiniLM",
)  # that the fast sweep knows
PAIRS = [
    ("The cat sleeps on the old mat.", "It is not awake."),
    ("Éva doesn't sing.", "She hums, softly, every morning."),
    ("Rain falls.", "Nothing stays dry outside, does it?"),
    ("A man plays.", "No."),
]
_SIZES = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
_SIZES |= {"hidden_size": HIDDEN, "intermediate_size": 48}
_LONGEST = "max_position_embeddings"
_DISTIL = {"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 48}


@cache
def model_and_tokenizer(name):
    """(classifier of two labels in evaluation mode, tokenizer)."""
    if name == "MiniLM":  # the real encoder
        from bertology_utils import load_classifier, load_tokenizer

        return load_classifier("embedded", "rte"), load_tokenizer("embedded")
    kind, tokenizer, extra = {
        "BERT": ("Bert", _embedded, {}),
        "RoBERTa": ("Roberta", partial(_bytes, "<s>", "</s>", True), {_LONGEST: 66}),
        "ELECTRA": ("Electra", _embedded, {"embedding_size": 16}),
        "DistilBERT": ("DistilBert", partial(_embedded, segments=False), _DISTIL),
        "ALBERT": ("Albert", _unigram, {"embedding_size": 16}),
        "multilingual BERT": ("Bert", _cased_pieces, {}),
        "ModernBERT": ("ModernBert", partial(_bytes, "[CLS]", "[SEP]"), {}),
        "E5": ("Bert", e5_tokenizer, {}),
    }[name]
    tokenizer = tokenizer()
    sizes = {} if kind == "DistilBert" else _SIZES
    sizes = sizes | {_LONGEST: 64, "vocab_size": len(tokenizer)} | extra
    ids = [f"{which}_token_id" for which in ("pad", "bos", "eos", "cls", "sep")]
    config = getattr(transformers, f"{kind}Config")(
        **sizes, **{name: getattr(tokenizer, name) for name in ids}
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config)
    for parameter in model.parameters():  # far from uniform attention
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.eval(), tokenizer


def parts_of(whole, size):
    """A batch, shortest examples first, in batches of so many, each cut to its longest."""
    batches = []
    for at in range(0, len(whole.index), size):
        rows = slice(at, at + size)
        longest = int(whole.lengths[rows].max())
        inputs = {name: ids[rows, :longest] for name, ids in whole.inputs.items()}
        batches.append(Batch(inputs, whole.index[rows]))
    return batches


def zero_queries(model, layer, head):
    """Set one head's query projection to zero, wherever the architecture keeps it."""
    size = model.config.hidden_size // model.config.num_attention_heads
    names = ("query", "q_lin", "Wqkv")
    linears = [module for name, module in model.named_modules() if name.rpartition(".")[2] in names]
    with torch.no_grad():  # of a joint projection, queries come first
        for parameter in linears[layer].parameters():
            parameter[head * size : (head + 1) * size] = 0


@cache
def e5_tokenizer():
    """The tokenizer of the encoder "e5", whose weights are left where they are."""
    _, pieces, special, _ = e5._read(e5.packed())
    return e5._tokenizer([pieces[at] for at in e5.kept_pieces(len(pieces))], special)


def _embedded(segments=True):
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    if not segments:
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return tokenizer


def _trained(model, trainer, split, decoder, first, last, double=False, **more):
    """A tokenizer trained on the pairs; ``double`` ends between the texts of a pair leave no segments."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = split, decoder
    if isinstance(model, models.WordPiece):
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.train_from_iterator([text for pair in PAIRS for text in pair] * 3, trainer)
    between, second = (f"{last}:0 {last}:0", 0) if double else (f"{last}:0", 1)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0",
        pair=f"{first}:0 $A:0 {between} $B:{second} {last}:{second}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )
    segments = [] if "bos_token" in more else ["token_type_ids"]
    names = ["input_ids", *segments, "attention_mask"]
    more = {"pad_token": "<pad>", "unk_token": "<unk>"} | more
    more |= {"cls_token": first, "sep_token": last}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=names, **more)


def _bytes(first, last, double=False):
    """Byte-level BPE, as RoBERTa and ModernBERT have it; no segments."""
    special, letters = [first, "<pad>", last, "<unk>"], splits.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=letters)
    split, ends = splits.ByteLevel(add_prefix_space=False), {"bos_token": first, "eos_token": last}
    return _trained(models.BPE(), trainer, split, decoders.ByteLevel(), first, last, double, **ends)


def _unigram():
    """SentencePiece's unigrams, as ALBERT has them."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>")
    around = splits.Metaspace(), decoders.Metaspace()
    return _trained(models.Unigram(), trainer, *around, "[CLS]", "[SEP]")


def _cased_pieces():
    """WordPiece with capitals and accents, as multilingual BERT has it; other ids than the embedded vocabulary's."""
    special = ["[UNK]", "[SEP]", "[PAD]", "[CLS]"]
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=special)
    around = splits.BertPreTokenizer(), decoders.WordPiece()
    model = models.WordPiece(unk_token="[UNK]")
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    return _trained(model, trainer, *around, "[CLS]", "[SEP]", **names)
