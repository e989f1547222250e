"""GLUE's own files: every layout, no quoting, and errors with file and line."""

import gzip

import pytest
from conftest import ROOT, SHARED, needs_shared
from datasets import Dataset

from bertology_utils import __main__ as cli
from bertology_utils import glue
from bertology_utils.glue import TASKS, check_split, load_rows
from bertology_utils.settings import parse_data

# One good file per task, in GLUE's layout: header, rows, and the labels they stand for.
MNLI_16 = (
    "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
    " sentence1 sentence2 label1 label2 label3 label4 label5 gold_label"
)
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
    "rte": (
        "index\tsentence1\tsentence2\tlabel",
        ["0\ta\tb\tentailment", "1\ta\tb\tnot_entailment"],
        [0, 1],
    ),
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


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout(tmp_path, name):
    task, (header, rows, labels) = TASKS[name], LAYOUTS[name]
    write(tmp_path, task, header, rows)
    loaded = load_rows(task, "dev", parse_data(f"folder:{tmp_path}"))
    assert loaded.features == glue.schema(task)
    assert loaded["label"] == labels
    assert loaded["idx"] == [0, 1]
    assert loaded.column_names == [*task.fields, "label", "idx"]


def test_training_file_named_on_its_own(tmp_path, monkeypatch):
    task, (header, rows, labels) = TASKS["rte"], LAYOUTS["rte"]
    write(tmp_path, task, header, rows, "train_subset.tsv")
    source = parse_data(f"folder:{tmp_path}", "RTE=train_subset.tsv")
    assert load_rows(task, "train", source)["label"] == labels
    with pytest.raises(
        FileNotFoundError, match=r"missing file .*train.tsv \(the folder has: train_subset.tsv\)"
    ):
        load_rows(task, "train", parse_data(f"folder:{tmp_path}"))
    write(tmp_path, task, header, rows * 2)
    monkeypatch.chdir(ROOT)
    call = [
        "check",
        "--only",
        "3",
        "-p",
        "tasks",
        "rte",
        "-p",
        "data",
        f"folder:{tmp_path}",
        "-p",
        "train_files",
    ]
    assert cli.main([*call, "RTE=train_subset.tsv"]) == 0 and cli.main([*call, "RTE=none.tsv"]) == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no rows"),
        (
            ["0\ta\tb\tentailment", "1\ta\tb"],
            r"dev.tsv, line 3: 3 columns where the header has 4; mend or delete this line",
        ),
        (["0\ta\tb\tentailment", "", "1\ta\tb\tentailment"], r"line 3: 1 columns"),
        (["0\ta\tb\tc\tentailment"], r"line 2: 5 columns"),
        (
            ["0\ta\tb\tmaybe"],
            r"line 2: unknown label 'maybe'; known are: entailment, not_entailment",
        ),
        (["0\ta\tb\t"], r"line 2: unknown label ''"),
        (["0\ta\tb\t2"], r"line 2: unknown label '2'"),
    ],
)
def test_broken_files_are_refused_with_file_and_line(tmp_path, rows, message):
    write(tmp_path, TASKS["rte"], LAYOUTS["rte"][0], rows)
    with pytest.raises(ValueError, match=message):
        load_rows(TASKS["rte"], "dev", parse_data(f"folder:{tmp_path}"))


@pytest.mark.parametrize("score", ["5.001", "-1", "nan", "high", ""])
def test_scores_out_of_range_are_refused(tmp_path, score):
    header, rows, _ = LAYOUTS["stsb"]
    write(tmp_path, TASKS["stsb"], header, [rows[0], rows[1].replace("5.000", score)])
    with pytest.raises(ValueError, match="line 3: label .* is not a score from 0 to 5"):
        load_rows(TASKS["stsb"], "dev", parse_data(f"folder:{tmp_path}"))


def test_empty_file_missing_column_and_missing_folder(tmp_path):
    path = write(tmp_path, TASKS["rte"], "", [])
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="no rows"):
        load_rows(TASKS["rte"], "dev", parse_data(f"folder:{tmp_path}"))
    write(tmp_path, TASKS["rte"], "index\tpremise\tlabel", ["0\ta\tentailment"])
    with pytest.raises(ValueError, match="line 1: no column 'sentence1' for RTE"):
        load_rows(TASKS["rte"], "dev", parse_data(f"folder:{tmp_path}"))
    with pytest.raises(FileNotFoundError, match="missing file .*has no .tsv file"):
        load_rows(TASKS["qnli"], "dev", parse_data(f"folder:{tmp_path}"))
    with pytest.raises(FileNotFoundError, match="wanted is GLUE's layout"):
        parse_data(f"folder:{tmp_path}/nowhere")


def test_sampling_is_by_seed_without_replacement():
    rows = Dataset.from_dict({"idx": list(range(100))})
    first, again, other = (glue.sample(rows, 30, seed)["idx"] for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 30
    assert first == sorted(first)
    assert glue.sample(rows, 0, 1)["idx"] == glue.sample(rows, 1000, 1)["idx"] == list(range(100))


REAL = [(name, split) for name in ("mrpc", "stsb", "rte") for split in ("train", "dev")] + [
    ("sst2", "dev")
]


@needs_shared
@pytest.mark.parametrize("name, split", REAL)
def test_real_files_equal_the_hubs_rows(name, split):
    """GLUE's .tsv files and the Hub's Parquet are the same rows, column by column."""
    task = TASKS[name]
    ours = load_rows(task, split, parse_data(f"folder:{SHARED / 'glue'}"))
    theirs = Dataset.from_file(
        str(
            SHARED
            / "hf_arrow"
            / name
            / ("train" if split == "train" else "validation")
            / "data.arrow"
        )
    )
    assert len(ours) == len(theirs)
    assert ours.features == theirs.features
    assert ours["label"][:] == theirs["label"][:]
    # The Hub's MRPC is tokenised ("company 's"), GLUE's own download is not.
    plain = _letters if name == "mrpc" else str
    for column in task.fields:
        assert [plain(text) for text in ours[column]] == [plain(text) for text in theirs[column]], (
            column
        )


def _letters(text):
    return "".join(character for character in text if character.isalnum())


@needs_shared
def test_real_mnli_with_four_columns():
    rows = load_rows(TASKS["mnli"], "dev", parse_data(f"folder:{SHARED / 'glue'}"))
    assert len(rows) == 9815
    assert set(rows["label"]) == {0, 1, 2}


def test_packed_files_are_read_like_plain_ones(tmp_path):
    header, rows, _labels = LAYOUTS["mrpc"]
    path = write(tmp_path, TASKS["mrpc"], header, rows)
    plain = load_rows(TASKS["mrpc"], "dev", parse_data(f"folder:{tmp_path}")).to_dict()
    path.with_name("dev.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert load_rows(TASKS["mrpc"], "dev", parse_data(f"folder:{tmp_path}")).to_dict() == plain


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("dev.tsv.gz", b"index\tsentence1", "dev.tsv.gz is no gzip file"),
        (
            "dev.tsv.gz",
            gzip.compress(b"index\tsentence1" * 99, mtime=0)[:-20],
            "dev.tsv.gz is no gzip file, or a damaged one",
        ),
        (
            "dev.tsv",
            b"index\tsentence1\tsentence2\tlabel\n0\t\xe9\tb\tentailment\n",
            "dev.tsv is no text in UTF-8",
        ),
    ],
    ids=["not gzip", "cut short", "Latin-1"],
)
def test_what_is_no_text_is_refused_with_its_name(tmp_path, name, content, message):
    (tmp_path / "RTE").mkdir()
    (tmp_path / "RTE" / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_rows(TASKS["rte"], "dev", parse_data(f"folder:{tmp_path}"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_empty_lines_at_the_end_are_no_rows(tmp_path, name):
    task, (header, rows, labels) = TASKS[name], LAYOUTS[name]
    write(tmp_path, task, header, [*rows, "", ""])
    assert load_rows(task, "dev", parse_data(f"folder:{tmp_path}"))["label"] == labels


@pytest.mark.parametrize("file", ["train.tsv", "train_subset.tsv", "dev.tsv"])
def test_rows_of_qqp_with_too_few_columns_are_left_out_and_counted(tmp_path, file):
    """GLUE's own files have some; the Hub leaves them out and counts them in ``idx``."""
    task, (header, rows, labels) = TASKS["qqp"], LAYOUTS["qqp"]
    write(tmp_path, task, header, [rows[0], "Why?\tHow?\t0", "", rows[1], "Why?"], file)
    source = parse_data(f"folder:{tmp_path}", f"qqp={file}")
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
    rte, mrpc = TASKS["rte"], TASKS["mrpc"]
    plain, own = parse_data(f"folder:{tmp_path}"), parse_data(f"folder:{tmp_path}", "rte=mine.tsv")
    with pytest.raises(
        FileNotFoundError, match=r"missing file .*RTE/train.tsv \(.*RTE has no .tsv file\)"
    ):
        check_split(rte, "train", plain)
    header, rows, _ = LAYOUTS["rte"]
    write(tmp_path, rte, header, [*rows, "2\tonly two"])
    with pytest.raises(
        FileNotFoundError, match=r"missing file .*train.tsv \(the folder has: dev.tsv\)"
    ):
        check_split(rte, "train", plain)
    with pytest.raises(ValueError, match="dev.tsv, line 4: 2 columns where the header has 4"):
        check_split(rte, "dev", plain)
    write(tmp_path, rte, header, [*rows, "2\ta\tb\t-1"])
    with pytest.raises(ValueError, match="dev.tsv, line 4: unknown label '-1'"):
        check_split(rte, "dev", plain)
    write(tmp_path, rte, header, [*rows, rows[0]])
    with pytest.raises(ValueError, match="dev.tsv: 3 rows; at least 4 are needed"):
        check_split(rte, "dev", plain)
    write(tmp_path, rte, header, [*rows, *rows])
    check_split(rte, "dev", plain)
    write(tmp_path, rte, header, [rows[0], rows[0]], "mine.tsv")
    with pytest.raises(ValueError, match="mine.tsv: RTE: all 2 training rows have the label 0"):
        check_split(rte, "train", own)
    write(tmp_path, rte, header, rows, "mine.tsv")
    check_split(rte, "train", own)
    with pytest.raises(FileNotFoundError, match="MRPC has no .tsv file"):
        check_split(mrpc, "train", own)
    write(tmp_path, rte, header.replace("label", "gold"), rows, "mine.tsv")
    with pytest.raises(ValueError, match="mine.tsv, line 1: no column 'label' for RTE"):
        check_split(rte, "train", own)
