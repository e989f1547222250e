"""Code cells of notebooks on tiny models, whose trainings are random: tasks alone or not learned, one training, other shapes."""

import json

import pytest
from conftest import ROOT, make_bert, random_classifier

from bertology_utils import jobs, lab, plots

FEW = {"train_examples": 40, "max_examples": 20, "sweep_examples": 40}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a notebook's cells and gives the names that stand after them; tasks are learned unless they are named."""

    def run(notebook, model, tasks, unlearned=(), **parameters):
        class Lab(lab.Lab):
            @property
            def learned(self):
                return {task: task.name not in unlearned for task in self.tasks}

            def finetuned(self, task, init="pretrained", seed_offset=0, cut=None):
                seed = (init == "normal") + 100 * seed_offset + 10_000 * len(str(cut))
                return random_classifier(model, task, seed=seed)

        monkeypatch.setattr(lab, "Lab", Lab)
        monkeypatch.setattr(jobs, "prepare", lambda lab: None)  # nothing is trained
        monkeypatch.setenv("BERTOLOGY_OUTPUT", str(tmp_path))
        (path,) = (ROOT / "notebooks").glob(f"{notebook}_*.ipynb")
        names = {"display": lambda table: None, "plots": plots}  # as its set-up imports it
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            tags = cell["metadata"].get("tags", [])
            if cell["cell_type"] == "code" and "setup" not in tags:
                exec("".join(cell["source"]), names)
                if "parameters" in tags:
                    given = FEW | {"model": str(model), "tasks": tasks} | parameters
                    names |= {name: value for name, value in given.items() if name in names}
        return names

    return run


def tasks_of(names, what, **labels):
    """The tasks of which a run recorded such numbers."""
    rows = [row for row in names["lab"].entries if row["what"] == what]
    return {row["task"] for row in rows if all(row[name] == of for name, of in labels.items())}


def test_the_page_runs_where_a_model_of_five_layers_has_no_skill_to_keep(run, tmp_path):
    names = run("10", make_bert(tmp_path / "bert", 5, 4, 32), "mrpc", trainings=1)
    assert not tasks_of(names, "skill kept with heads removed")
    assert len(names["lab"].verdicts) == 11, "each claim of the notebook"
