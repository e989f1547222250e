"""The embedded corpora's files: what the generator writes, and what the package's readers make of them."""

import gzip

import pytest

from bertology_utils.annotation import annotators
from bertology_utils.corpora import GLUE
from bertology_utils.finetune import rows_digest
from bertology_utils.glue import TASKS, load_rows, schema
from bertology_utils.sources import parse_data
from corpora_generator import files, generate

# Cached models are keyed by these digests of the training rows.
TRAINING_ROWS = {
    "mrpc": "7d8edcb53c7197067ed4b95d419e0f34ff615b06805018974f1425619dd56e86",
    "stsb": "55361763c71d87eca6f63961ae918a45fa3b4355da3e6f159fbd8aeb49abd0fa",
    "sst2": "8758591629aae54b0522bda155e4d6964ef82fdf2fae35746218e8f80526b2f0",
    "qqp": "6d63b4de1692d2b3b48d37f846421905ee9fcc7a0e05046514e6407f8fa479e4",
    "rte": "eec744f511c38c0b0f7245d44f397926158748ca1997892da102dbbb12e69a73",
    "qnli": "55d2ed7217418ab80467f1e85e9057346887c04230475e6f651711af481354c2",
    "mnli": "60e5ca66f536e4ea4d3ff51d24248fdd79a3ebaa68828a1650e721b31f803de4",
}
OFFICIAL_HEADERS = {
    "MRPC/dev.tsv": "Quality,#1 ID,#2 ID,#1 String,#2 String",
    "STS-B/dev.tsv": "index,genre,filename,year,old_index,source1,source2,sentence1,sentence2,score",
    "SST-2/dev.tsv": "sentence,label",
    "QQP/dev.tsv": "id,qid1,qid2,question1,question2,is_duplicate",
    "RTE/dev.tsv": "index,sentence1,sentence2,label",
    "QNLI/dev.tsv": "index,question,sentence,label",
    "MNLI/train.tsv": "index,promptID,pairID,genre,sentence1_binary_parse,sentence2_binary_parse,sentence1_parse,"
    "sentence2_parse,sentence1,sentence2,label1,gold_label",
    "MNLI/dev_matched.tsv": "index,promptID,pairID,genre,sentence1_binary_parse,sentence2_binary_parse,sentence1_parse,"
    "sentence2_parse,sentence1,sentence2,label1,label2,label3,label4,label5,gold_label",
}


def test_the_files_are_what_the_generator_makes():
    """Byte for byte once unpacked: how small zlib packs them is its own affair."""
    made = files.contents()
    there = {path.relative_to(GLUE.parent).as_posix() for path in GLUE.parent.rglob("*") if path.suffix in (".gz", ".zip")}
    assert set(made) == there
    for name, content in made.items():
        assert files.unpacked(GLUE.parent / name) == content, f"{name}: renew it by python -m corpora_generator"


def test_writing_twice_gives_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        assert len(files.write(tmp_path / folder)) == 22
        assert files.write(tmp_path / folder) == []
    for path in (tmp_path / "one").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
    (tmp_path / "one" / "glue" / "RTE" / "dev.tsv.gz").write_bytes(gzip.compress(b"other"))
    assert files.write(tmp_path / "one") == ["glue/RTE/dev.tsv.gz"]


@pytest.mark.parametrize("name", OFFICIAL_HEADERS)
def test_columns_are_glue_s_own(name):
    header = gzip.decompress((GLUE / f"{name}.gz").read_bytes()).decode().split("\n")[0]
    assert header.removeprefix("\ufeff").split("\t") == OFFICIAL_HEADERS[name].split(",")
    assert header.startswith("\ufeff") == name.startswith("MRPC")


@pytest.mark.parametrize("name", TASKS)
def test_the_readers_give_what_was_generated(name):
    task, made = TASKS[name], generate(name)
    for split, wanted in (("train", made["train"]), ("dev", made["validation"])):
        rows = load_rows(task, split, parse_data("embedded"))
        assert rows.features == schema(task) and rows["idx"] == list(range(len(wanted)))
        assert rows["label"] == (
            pytest.approx([row.label for row in wanted], abs=1e-6) if task.is_regression else [row.label for row in wanted]
        )
        for field in task.fields:
            assert rows[field] == [row.text[field] for row in wanted]
    gold = annotators.load_annotator("gold", [name])
    for row in made["validation"]:
        assert gold.annotate(list(row.text.values())) == list(row.sentences.values())


@pytest.mark.parametrize("name", TRAINING_ROWS)
def test_training_rows_are_those_of_cached_models(name):
    assert rows_digest(load_rows(TASKS[name], "train", parse_data("embedded"))) == TRAINING_ROWS[name]
