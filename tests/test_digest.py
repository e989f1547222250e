"""A hash changes with the content of a value, and with the code that a function uses; with nothing else."""

import functools
import importlib
import io
import os
import re
import sys
import types
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from conftest import loaded, make_bert, make_rows, python

from bertology_utils import batches_of, common, digest, disable_heads, finetune, models
from bertology_utils.attention import batches, hooks, maps
from bertology_utils.digest import UnhashableError, code_digest, fingerprint
from bertology_utils.disabling import masking
from bertology_utils.disabling.sweep import sweep
from bertology_utils.drift.measure import reset_logits
from bertology_utils.features.measure import FlowShares
from bertology_utils.glue import TASKS


@pytest.fixture(autouse=True)
def _nothing_remembered():
    """Digests are remembered for a process, whose code does not change; in these tests it does."""
    forget()
    yield
    forget()


def forget():
    for remembered in (digest.code_digest, digest._nodes, digest._index, digest._read):
        remembered.cache_clear()


# Code

PACKAGE = {
    "__init__": "",
    "a": '''
"""A module."""
import functools, math
from contextlib import contextmanager
from typing import TYPE_CHECKING
import numpy as np
from . import b
from .c import Record, Shape as Form
if TYPE_CHECKING:
    from .d import Unused
FACTOR: float = 2
TABLE = {"first": lambda size: size + 1}
TABLE["x"] = b.seldom
RECORD = Record(4, "name")
ARRAY = np.arange(3)
MIXED = (1, [2, {"three": 3}])
def decorated(function): return function
def measured(size: int) -> "Unused":
    """What is measured."""
    if size < 0:
        raise ValueError(f"{size} is too small")
    return b.helper(size) * FACTOR + Form(size).area() + math.pi  # a remark
def unrelated(FACTOR): return FACTOR
def by_table(name): return TABLE[name]()
def here():
    from .d import late
    return late()
def of_module():
    from . import d
    return d.late()
def fetched():
    from .e import offered
    return offered
@functools.cache
def remembered(): return b.other()
@contextmanager
def opened(): yield b.other()
def around():
    def inner(): return b.other()
    with opened(): return remembered() + inner()
@decorated
def wrapped(): return 1
def constants(): return ARRAY, MIXED, RECORD
def of_record(record): return record.double + getattr(record, "half")
def unfinished(): return NOWHERE
''',
    "b": """
def helper(size):
    return [inner(each) for each in range(size)]
def inner(each): return each
def other(): return 1
def seldom(): return 3
""",
    "c": """
from dataclasses import dataclass
from functools import cached_property
class Base:
    def side(self): return 1
class Shape(Base):
    def __init__(self, size): self.size = size
    def area(self): return self.size * EDGE
    @staticmethod
    def corners(): return 4
    @property
    def round(self): return False
EDGE = 1
@dataclass(frozen=True)
class Record:
    number: int
    name: str = "none"
    def __post_init__(self): assert self.number != 0
    @property
    def double(self): return 2 * self.number
    @cached_property
    def half(self): return self.whole() / 2
    def whole(self): return self.number
    def unused(self): return 1
""",
    "d": "class Unused: pass\ndef late(): return 1\n",
    "e/__init__": "import importlib\ndef __getattr__(name):\n"
    "    return getattr(importlib.import_module('p.e.f'), name)\n",
    "e/f": "offered = 1\nelse_ = 2\n",
}


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    """The digest of a function in a package of these files."""
    monkeypatch.setattr(digest, "_PACKAGE", "p")

    def made(files, name, *classes):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        for place, text in files.items():
            path = folder / "p" / f"{place}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            monkeypatch.setitem(common.SOURCES, f"p.{place}".replace("/", "."), text)
        for module in [one for one in sys.modules if one.split(".")[0] == "p"]:
            monkeypatch.delitem(sys.modules, module)
        with monkeypatch.context() as here:
            here.syspath_prepend(folder)
            forget()
            modules = [importlib.import_module(f"p.{one}") for one in ("a", "c")]
            others = frozenset(getattr(modules[1], one) for one in classes)
            return code_digest(getattr(modules[0], name), others)

    return made


def edited(files, place, old, new):
    assert files[place].count(old) == 1
    return files | {place: files[place].replace(old, new)}


FOLLOWED = [  # function, module, and an edit of it
    ("measured", "b", "return each", "return -each"),  # a helper's helper
    ("measured", "a", "FACTOR: float = 2", "FACTOR: float = 3"),
    ("measured", "c", "self.size * EDGE", "EDGE"),  # a method
    ("measured", "c", "return 4", "return 5"),  # a static one
    ("measured", "c", "side(self): return 1", "side(self): return 2"),  # of a base
    ("measured", "c", "EDGE = 1", "EDGE = 2"),  # what a method uses
    ("measured", "a", "size < 0", "size < 1"),
    ("by_table", "b", "return 3", "return 4"),  # by a table that is filled at import
    ("by_table", "a", "size + 1", "size + 2"),  # a lambda in it
    ("here", "d", "return 1", "return 2"),  # imported within the function
    ("of_module", "d", "return 1", "return 2"),
    ("fetched", "e/f", "offered = 1", "offered = 3"),  # imported when it is first asked for
    ("around", "b", "return 1", "return 2"),  # in a context, behind a cache, in a function
    ("around", "a", "@functools.cache", "@functools.lru_cache(maxsize=1)"),
    ("wrapped", "a", "(function): return function", "(function): return 1 and function"),
    ("constants", "a", "np.arange(3)", "np.arange(4)"),
    ("constants", "a", '{"three": 3}', '{"three": 4}'),
    ("constants", "a", 'Record(4, "name")', 'Record(5, "name")'),
    ("constants", "c", "assert self.number", "assert -self.number"),  # what a record checks
    # Of the class of an argument those members that are used.
    ("of_record", "c", "return 2 * self.number", "return 3 * self.number"),
    ("of_record", "c", "self.whole() / 2", "self.whole() / 3"),  # named in a string
    ("of_record", "c", "whole(self): return self.number", "whole(self): return -self.number"),
    ("of_record", "c", 'name: str = "none"', 'name: str = "other"'),
    ("of_record", "c", "frozen=True", "frozen=False"),
]
NOT_FOLLOWED = [
    ("measured", "b", "return 1", "return 2"),  # a function that it does not use
    ("measured", "a", "What is measured.", "What was measured."),
    ("measured", "a", "is too small", "is below 0"),
    ("measured", "a", "size: int", "size: float"),
    ("measured", "a", "b.helper(size) * FACTOR", "(b.helper(size)  *  FACTOR)"),
    ("measured", "a", "FACTOR: float = 2", "FACTOR: int = 1 + 1"),
    ("measured", "b", "def helper(size):", "def added(): pass\ndef helper(size):"),
    ("unrelated", "a", "FACTOR: float = 2", "FACTOR: float = 3"),  # its argument's name
    ("fetched", "e/f", "else_ = 2", "else_ = 3"),
    # Or a new property of Task would train all models anew.
    ("of_record", "c", "def unused(self): return 1", "def unused(self): return 2"),
    ("of_record", "c", "def unused(self): return 1", "def more(self): pass"),
]


@pytest.mark.parametrize("edit", FOLLOWED + NOT_FOLLOWED)
def test_a_digest_follows_what_a_function_uses_and_nothing_else(digest_of, edit):
    name, place, old, new = edit
    classes = ["Record"] if name == "of_record" else []
    changed = digest_of(edited(PACKAGE, place, old, new), name, *classes)
    assert (changed != digest_of(PACKAGE, name, *classes)) == (edit in FOLLOWED)


# Edits that change what comes out: of which function; a module, and its text or a constant's value.
DECISIVE = [
    (sweep, masking, "layer not in chosen", "layer in chosen"),  # models unknown to the fast sweep
    (sweep, sys.modules[sweep.__module__], "return predict_logits(", "return 0 * predict_logits("),
    (finetune.train, models, "ATTENTION", "sdpa"),
    (finetune.train, models, "parameter.fill_(1.0", "parameter.fill_(2.0"),
    (finetune.train, finetune, "recipe.warmup * steps", "recipe.warmup * steps / 2"),
    (finetune.train, batches, "label / 5", "label / 4"),
    (models.predict_logits, models, "model(**", "model(*[], **"),
    (reset_logits, models, "model(**", "model(*[], **"),
    (finetune.finetuned, models, "NORMAL_STD", 0.03),
    (maps.observe, hooks, "IMPLEMENTATION", "another"),
]


@pytest.mark.parametrize(("function", "module", "old", "new"), DECISIVE)
def test_the_key_of_a_training_a_sweep_and_a_pass_follows_what_decides_it(
    function, module, old, new, monkeypatch
):
    before = code_digest(function)
    if old.isidentifier():
        monkeypatch.setattr(module, old, new)
    else:
        text = common.SOURCES[module.__name__]
        assert old in text
        monkeypatch.setitem(common.SOURCES, module.__name__, text.replace(old, new))
    forget()
    assert code_digest(function) != before


def test_an_edit_during_a_run_files_nothing_under_a_new_key(monkeypatch):
    before = code_digest(sweep)
    for name in ("builtins.open", "io.open", "pathlib.Path.read_text", "inspect.getsource"):
        monkeypatch.setattr(name, Mock(side_effect=AssertionError("the code is read again")))
    forget()
    assert code_digest(sweep) == before


def test_what_is_left_out_of_the_code_exists():
    for name in digest.IGNORED:
        module, _, function = name.rpartition(".")
        assert name in common.SOURCES or hasattr(importlib.import_module(module), function), name


def test_a_function_that_a_session_put_in_the_place_of_another_has_no_digest(monkeypatch):
    own = types.FunctionType(models.predict_logits.__code__, {"__name__": "__main__"})
    own.__module__ = "__main__"
    monkeypatch.setattr(sys.modules[sweep.__module__], "predict_logits", own)
    forget()
    with pytest.raises(UnhashableError, match="predict_logits"):
        code_digest(sweep)


# Content

VALUES = (
    [0, 1, -1, 0.0, -0.0, True, False, None, "", "0", b"0", float("nan")]
    + [(), [], {}, (0,), [0], {0: 1}, {1: 0}, {"0": 1}, [[0], 1], [0, [1]], {1, 2}, {1, 3}]
    + [np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), np.zeros(2, int), np.float64(0)]
    + [[np.zeros(2), np.ones(2)], [np.zeros(3), np.ones(1)], (np.zeros(2), np.ones(2))]
    + [torch.zeros(2), torch.zeros(2, 1), torch.zeros(2, dtype=torch.bfloat16), torch.zeros(())]
    + [torch.float32, torch.float16, re.compile("a"), re.compile("a", re.IGNORECASE)]
    + [FlowShares(np.zeros(1), np.ones(1)), FlowShares(np.ones(1), np.zeros(1)), FlowShares]
    + [make_rows(TASKS["rte"], 4), make_rows(TASKS["rte"], 5), TASKS["rte"], TASKS["qqp"]]
    + [models.draw_normal, models.load_config, ("FlowShares", [0]), ("list", [0])]
)


def test_different_values_have_different_hashes_and_equal_ones_the_same():
    assert len({fingerprint(value) for value in VALUES}) == len(VALUES)
    assert fingerprint({"a", "b", "c"}) == fingerprint({"c", "a", "b"})
    assert fingerprint(make_rows(TASKS["rte"], 4)) == fingerprint(make_rows(TASKS["rte"], 4))
    turned = np.arange(6).reshape(2, 3).T
    assert fingerprint(turned) == fingerprint(turned.copy())
    one = [1.5]
    assert fingerprint([one, one]) == fingerprint([one, one.copy()])


@pytest.mark.parametrize("change", ["a weight", "the configuration", "training", "the shape"])
def test_another_model_has_another_hash(tiny_bert, tmp_path, change):
    model, plain = (loaded(tiny_bert)[0] for _ in range(2))
    assert fingerprint(model) == fingerprint(plain)
    if change == "a weight":
        with torch.no_grad():
            model.encoder.layer[2].output.dense.bias[3] += 1e-7
    elif change == "the configuration":
        model.config.layer_norm_eps = 1e-3
    elif change == "training":
        model.encoder.layer[1].train()
    else:
        model, _ = loaded(make_bert(tmp_path / "other", layers=3, heads=2, hidden=32))
    assert fingerprint(model) != fingerprint(plain)


def test_a_folder_elsewhere_and_another_process_give_the_same(tiny_bert, tmp_path):
    texts = ["A small lamp stood near the window.", "The river was cold."]
    code = (
        "import sys; from bertology_utils import batches_of, models\n"
        "from bertology_utils.digest import code_digest, fingerprint\n"
        "from bertology_utils.disabling.sweep import sweep\n"
        f"encoder, tokenizer = models.load_encoder(sys.argv[1]), models.load_tokenizer(sys.argv[1])\n"
        f"value = encoder, models.draw_normal, batches_of({texts!r}, tokenizer), {{'b', 'a', 'c'}}\n"
        "print(fingerprint(value), code_digest(sweep))"
    )
    (tmp_path / "elsewhere").symlink_to(tiny_bert)
    env = os.environ | {"PYTHONHASHSEED": "7"}
    told = python(code, tmp_path / "elsewhere", env=env, check=True).stdout
    encoder, tokenizer = loaded(tiny_bert)
    value = encoder, models.draw_normal, batches_of(texts, tokenizer), {"a", "b", "c"}
    assert told.split()[-2:] == [fingerprint(value), code_digest(sweep)]


class Own:
    """Of which the next session may have another of the same name."""

    value = 1


def test_what_has_no_stable_hash_is_refused(tiny_bert):
    encoder, _ = loaded(tiny_bert)
    partial = functools.partial(models.draw_normal, only_head=True)
    values = (lambda: 1, Own(), Own, Own().__init__, io.BytesIO(), (x for x in ()), partial)
    for value in (*values, np.array(["a", None], object), object()):
        with pytest.raises(UnhashableError):
            fingerprint([value])
    with disable_heads(encoder, [(0, 0)]), pytest.raises(UnhashableError, match="disabled"):
        fingerprint(encoder)
    hook = encoder.encoder.layer[1].register_forward_hook(lambda *_: None)
    with pytest.raises(UnhashableError, match="hooks"):
        fingerprint(encoder)
    hook.remove()
    before = fingerprint(encoder)
    encoder(torch.ones(1, 3, dtype=torch.int64), output_hidden_states=True)
    assert fingerprint(encoder) == before, "transformers leaves hooks that do nothing"
    with pytest.raises(UnhashableError, match="code of .*Mine"):
        fingerprint(type("Mine", (torch.nn.Linear,), {"__module__": "test_digest"})(2, 2))
