"""Small classifiers with random weights, one of each kind of architecture, each with a tokenizer."""

from functools import cache, partial

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, processors, trainers
from tokenizers import pre_tokenizers as splits
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from bertology_utils import Batch
from bertology_utils.settings import embedded_folder

LAYERS, HEADS, HIDDEN = 3, 4, 32
FAST = ("Bert", "Roberta", "Electra")  # that the fast sweep knows
NAMES = (*FAST, "DistilBert", "Albert", "ModernBert")  # as transformers has them
PAIRS = [
    ("The cat sleeps on the old mat.", "It is not awake."),
    ("Éva doesn't sing.", "She hums, softly, every morning."),
    ("Rain falls.", "Nothing stays dry outside, does it?"),
    ("A man plays.", "No."),
]
_SIZES = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
_SIZES |= {"hidden_size": HIDDEN, "intermediate_size": 48, "max_position_embeddings": 66}
_DISTIL = {"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 48}


@cache
def model_and_tokenizer(name):
    """(classifier of two labels in evaluation mode, tokenizer)."""
    make_tokenizer, sizes = {
        "Bert": (_embedded, _SIZES),
        "Roberta": (partial(_bytes, "<s>", "</s>", True), _SIZES),
        "Electra": (_embedded, _SIZES | {"embedding_size": 16}),
        "DistilBert": (partial(_embedded, segments=False), _DISTIL),
        "Albert": (_unigram, _SIZES | {"embedding_size": 16}),
        "ModernBert": (partial(_bytes, "[CLS]", "[SEP]"), _SIZES),
    }[name]
    tokenizer = make_tokenizer()
    ids = [f"{which}_token_id" for which in ("pad", "bos", "eos", "cls", "sep")]
    config = getattr(transformers, f"{name}Config")(
        **sizes, vocab_size=len(tokenizer), **{which: getattr(tokenizer, which) for which in ids}
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForSequenceClassification")(config)
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


def _embedded(segments=True):
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    if not segments:
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return tokenizer


def _trained(model, trainer, split, decoder, first, last, double=False, segments=True, **ends):
    """A tokenizer trained on the pairs; ``double``: with two ends between the texts of a pair."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = split, decoder
    tokenizer.train_from_iterator([text for pair in PAIRS for text in pair] * 3, trainer)
    between = f"{last} {last}" if double else last
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {between} $B:1 {last}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )
    names = ["input_ids", *["token_type_ids"] * segments, "attention_mask"]
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": first, "sep_token": last}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=names, **special, **ends
    )


def _bytes(first, last, double=False):
    """Byte-level BPE, as RoBERTa and ModernBERT have it; no segments."""
    special, letters = [first, "<pad>", last, "<unk>"], splits.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=letters)
    around = splits.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    ends = {"bos_token": first, "eos_token": last}
    return _trained(models.BPE(), trainer, *around, first, last, double, False, **ends)


def _unigram():
    """SentencePiece's unigrams, as ALBERT has them."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>")
    around = splits.Metaspace(), decoders.Metaspace()
    return _trained(models.Unigram(), trainer, *around, "[CLS]", "[SEP]")
