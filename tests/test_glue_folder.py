"""GLUE's own files: every layout, no quoting, and errors with file and line."""

import gzip
import re
from contextlib import nullcontext

import pytest
from conftest import SHARED, needs_shared
from datasets import Dataset

from bertology_utils import glue
from bertology_utils.glue import TASKS, check_split, load_rows
from bertology_utils.settings import parse_data
from bertology_utils.study import Study

# One good file per task, in GLUE's layout: header, rows, and the labels they stand for.
MNLI_16 = (
    "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
    " sentence1 sentence2 label1 label2 label3 label4 label5 gold_label"
)
RTE_HEADER = "index\tsentence1\tsentence2\tlabel"
LAYOUTS = {
    "mrpc": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        ['1\t1\t2\tHe said "no.\tHe refused.', "0\t3\t4\ta\tb"],
        [1, 0],
    ),
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        ["0\tg\tf\t2012\t1\tn\tn\tA cat.\tA dog.\t2.500", "1\tg\tf\t2012\t1\tn\tn\tA.\tB.\t5.000"],
        [2.5, 5.0],
    ),
    "sst2": ("sentence\tlabel", ["fine \t1", "dull \t0"], [1, 0]),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        ["7\t1\t2\tWhy?\tHow?\t0", "8\t1\t2\tWhy?\tWhy so?\t1"],
        [0, 1],
    ),
    "rte": (RTE_HEADER, ["0\ta\tb\tentailment", "1\ta\tb\tnot_entailment"], [0, 1]),
    "qnli": (
        "index\tquestion\tsentence\tlabel",
        ["0\twho?\tb\tentailment", "1\twho?\tb\tnot_entailment"],
        [0, 1],
    ),
    "mnli": (
        MNLI_16.replace(" ", "\t"),
        [
            "\t".join(["x"] * 8 + ["a", "b"] + ["neutral"] * 5 + [label])
            for label in ("contradiction", "neutral")
        ],
        [2, 1],
    ),
}


def write(folder, task, header, rows, name=None):
    path = folder / task.folder / (name or task.dev_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8", newline="\n")
    return path


def read(folder, name, split="dev"):
    return load_rows(TASKS[name], split, parse_data(f"folder:{folder}"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_plain_or_packed_with_empty_lines_at_its_end(tmp_path, name):
    task, (header, rows, labels) = TASKS[name], LAYOUTS[name]
    path = write(tmp_path, task, header, [*rows, "", ""])
    plain = read(tmp_path, name)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    for loaded in (plain, read(tmp_path, name)):
        assert loaded.features == glue.schema(task)
        assert loaded["label"] == labels and loaded["idx"] == [0, 1]
        assert loaded.column_names == [*task.fields, "label", "idx"]


RTE = {name: f"0\ta\tb\t{name}" for name in ("entailment", "maybe", "2", "-1", "")}
YES = RTE["entailment"]
BROKEN = [
    ("", [], "no rows"),
    (RTE_HEADER, [], "no rows"),
    ("index\tpremise\tlabel", [YES], "line 1: no column 'sentence1' for RTE"),
    (RTE_HEADER, [YES, "1\ta\tb"], "line 3: 3 columns where the header has 4; mend or"),
    (RTE_HEADER, [YES, "", YES], "line 3: 1 columns"),
    (RTE_HEADER, ["0\ta\tb\tc\tentailment"], "line 2: 5 columns"),
    (RTE_HEADER, [RTE["maybe"]], "unknown label 'maybe'; known are: entailment, not_entailme"),
    *((RTE_HEADER, [RTE[name]], f"line 2: unknown label '{name}'") for name in ("", "2", "-1")),
]


@pytest.mark.parametrize(("header", "rows", "message"), BROKEN)
def test_broken_files_are_refused_with_file_and_line_by_a_run_and_by_its_check(
    tmp_path, header, rows, message
):
    write(tmp_path, TASKS["rte"], header, rows)
    for use in (load_rows, check_split):
        with pytest.raises(ValueError, match=f"dev.tsv.*{message}"):
            use(TASKS["rte"], "dev", parse_data(f"folder:{tmp_path}"))


@pytest.mark.parametrize("score", ["5.001", "-1", "nan", "high", ""])
def test_scores_out_of_range_are_refused(tmp_path, score):
    header, rows, _ = LAYOUTS["stsb"]
    write(tmp_path, TASKS["stsb"], header, [rows[0], rows[1].replace("5.000", score)])
    with pytest.raises(ValueError, match="line 3: label .* is not a score from 0 to 5"):
        read(tmp_path, "stsb")


def test_sampling_is_by_seed_without_replacement():
    rows = Dataset.from_dict({"idx": list(range(100))})
    first, again, other = (glue.sample(rows, 30, seed)["idx"] for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 30
    assert first == sorted(first)
    assert glue.sample(rows, 0, 1)["idx"] == glue.sample(rows, 1000, 1)["idx"] == list(range(100))


REAL = [(name, split) for name in ("mrpc", "stsb", "rte") for split in ("train", "dev")]


@needs_shared
@pytest.mark.parametrize(("name", "split"), [*REAL, ("sst2", "dev")])
def test_real_files_equal_the_hubs_rows(name, split):
    """GLUE's .tsv files and the Hub's Parquet are the same rows, column by column."""
    task = TASKS[name]
    ours, folder = read(SHARED / "glue", name, split), SHARED / "hf_arrow" / name
    theirs = Dataset.from_file(f"{folder / split.replace('dev', 'validation')}/data.arrow")
    assert len(ours) == len(theirs)
    assert ours.features == theirs.features
    assert ours["label"][:] == theirs["label"][:]
    # The Hub's MRPC is tokenised ("company 's"), GLUE's own download is not.
    left_out = r"\W|_" if name == "mrpc" else "$^"
    for column in task.fields:
        texts = [[re.sub(left_out, "", one) for one in rows[column]] for rows in (ours, theirs)]
        assert texts[0] == texts[1], column


CUT_SHORT = gzip.compress(b"index\tsentence1" * 99, mtime=0)[:-20]
NO_TEXT = [
    ("dev.tsv.gz", b"index\tsentence1", "dev.tsv.gz is no gzip file"),
    ("dev.tsv.gz", CUT_SHORT, "dev.tsv.gz is no gzip file, or a damaged one"),
    ("dev.tsv", f"{RTE_HEADER}\n".encode() + b"\xe9", "dev.tsv is no text in UTF-8"),
]


@pytest.mark.parametrize(("name", "content", "message"), NO_TEXT)
def test_what_is_no_text_is_refused_with_its_name(tmp_path, name, content, message):
    (tmp_path / "RTE").mkdir()
    (tmp_path / "RTE" / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "rte")


@pytest.mark.parametrize("file", ["train.tsv", "dev.tsv"])
def test_rows_of_qqp_with_too_few_columns_are_left_out_and_counted(tmp_path, file):
    """GLUE's own files have some; the Hub leaves them out and counts them in ``idx``."""
    task, (header, rows, labels) = TASKS["qqp"], LAYOUTS["qqp"]
    write(tmp_path, task, header, [rows[0], "Why?\tHow?\t0", "", rows[1], "Why?"], file)
    source = parse_data(f"folder:{tmp_path}")
    split = "dev" if file == "dev.tsv" else "train"
    with pytest.warns(UserWarning, match=rf"{file}: 3 rows are left out.*the first is line 3"):
        loaded = load_rows(task, split, source)
    assert loaded["label"] == labels and loaded["idx"] == [0, 3]
    write(tmp_path, task, header, [rows[0], rows[1] + "\t0"], file)
    with pytest.raises(ValueError, match="line 3: 7 columns where the header has 6"):
        load_rows(task, split, source)
    write(tmp_path, task, header, ["Why?", "How?"], file)
    with pytest.raises(ValueError, match="line 3: 1 columns where the header has 6"):
        load_rows(task, split, source)


def test_what_a_run_would_refuse_of_a_folder_is_refused_by_its_check(tmp_path):
    header, (yes, no), _ = LAYOUTS["rte"]

    def check(name, split, error=None, message=""):
        source = parse_data(f"folder:{tmp_path}")
        with pytest.raises(error, match=message) if error else nullcontext():
            check_split(TASKS[name], split, source)

    def put(*rows, header=header, file="dev.tsv"):
        write(tmp_path, TASKS["rte"], header, rows, file)

    check("rte", "train", FileNotFoundError, r"RTE/train.tsv \(.*RTE has no .tsv file\)")
    put(yes, no, yes)
    check("rte", "train", FileNotFoundError, r"train.tsv \(the folder has: dev.tsv\)")
    check("rte", "dev", ValueError, "dev.tsv: 3 rows; at least 4 are needed")
    put(yes, no, yes, no)
    check("rte", "dev")
    put(yes, yes, file="train.tsv")
    check("rte", "train", ValueError, "train.tsv: RTE: all 2 training rows have the label 0")
    put(yes, no, file="train.tsv")
    check("rte", "train")
    check("mrpc", "train", FileNotFoundError, "MRPC has no .tsv file")
    put(yes, no, header=header.replace("label", "gold"), file="train.tsv")
    check("rte", "train", ValueError, "train.tsv, line 1: no column 'label' for RTE")


def sst2_study(folder, train, dev, **entries):
    """A study on rows of a folder; texts are numbers, and labels their parity."""
    for name, numbers in {"train.tsv": train, "dev.tsv": dev}.items():
        rows = [f"text {number} \t{number % 2}" for number in numbers]
        write(folder, TASKS["sst2"], "sentence\tlabel", rows, name)
    usual = {"data": f"folder:{folder}", "annotation": "spacy:numpy", "train_rows": 20}
    return Study.of("small", "sst2", **usual | entries)


def test_heads_are_disabled_on_rows_that_no_run_trains_on(tmp_path):
    study = sst2_study(tmp_path, range(60), range(50, 70))
    trained, measured = (set(study.rows("SST-2", which)["sentence"]) for which in ("train", -1))
    assert not measured & trained  # though half of the dev rows are in the training file
    assert len(trained) == 20 and len(measured) == len(study.rows("SST-2", -1))
    first = study.rows("SST-2", 8)["sentence"]
    assert first == study.rows("SST-2", 20)["sentence"][:8], "a number is of the first ones"
    other = sst2_study(tmp_path, range(60), range(50, 70), seed=2)
    assert other.rows("SST-2", 8)["sentence"] != first


def test_dev_rows_that_are_training_rows_are_refused(tmp_path):
    study = sst2_study(tmp_path, range(20), range(10, 22))
    with pytest.raises(ValueError, match="SST-2: 10 of the 12 rows to measure on are training"):
        study.rows("SST-2", -1)
