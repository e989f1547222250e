"""The set-up cell of the notebooks on an imitation of Colab: what it adds, and that it changes nothing else.

    python benchmarks/colab_set_up.py PYTHON [--cells N]

PYTHON is that of a virtual environment with Colab's versions, such as torch 2.11, transformers
5.15, datasets 4.0 and numpy 2.1, without this project. The committed state of the checkout is
published in a copy, at an address that git is told to find on this disk; google.colab is a package
with nothing but a Drive. The cell runs twice, then the first N code cells of notebook 2, in a
folder without the checkout. At the end what was added is taken away again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
ADDRESS, TAG = "https://github.com/someone/something", "v0"
NOTEBOOK = "2_framenet_heads.ipynb"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=lambda text: Path(text).absolute())
    parser.add_argument("--cells", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return try_out(options.python, Path(folder), options.cells)


def try_out(python, folder, cells):
    served, copy, content = folder / "served.git", folder / "copy", folder / "content"
    publish(copy, served)
    (folder / "stub" / "google" / "colab").mkdir(parents=True)
    (folder / "stub" / "google" / "colab" / "__init__.py").touch()
    drive = "from pathlib import Path\ndef mount(place):\n    Path(place, 'MyDrive').mkdir(parents=True, exist_ok=True)\n"
    (folder / "stub" / "google" / "colab" / "drive.py").write_text(drive)
    content.mkdir()
    found_there = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{served}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
    }
    environment = (
        os.environ
        | found_there
        | {"PYTHONPATH": str(folder / "stub"), "BERTOLOGY_CACHE": str(folder / "cache")}
    )
    notebook = json.loads((copy / "notebooks" / NOTEBOOK).read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    before, said = versions(python), []
    print(f"before: {len(before)} distributions")
    try:
        for _ in range(2):
            cell = [python, "-m", "IPython", "-c", "".join(code[0]["source"])]
            lines = call(cell, content, environment).splitlines(keepends=True)
            said.append("".join(line for line in lines if not line.startswith("Note: ")))  # by %pip
            print(said[-1], end="")
        after = versions(python)
        changed = {
            name: (version, after.get(name))
            for name, version in before.items()
            if after.get(name) != version
        }
        print(
            f"added: {', '.join(f'{name} {after[name]}' for name in sorted(after.keys() - before.keys()))}"
        )
        left = [path.name for path in content.iterdir()]  # a clone, which holds the measurements
        print(
            f"changed: {changed or 'nothing'}; the same said twice: {said[0] == said[1]}; in the folder: {left or 'nothing'}"
        )
        if cells:
            notebook["cells"] = notebook["cells"][: notebook["cells"].index(code[cells - 1]) + 1]
            (content / NOTEBOOK).write_text(json.dumps(notebook))
            run = ["-m", "papermill", "--no-progress-bar", "-k", "python3", NOTEBOOK, "out.ipynb"]
            call([python, *run], content, environment)
            print(f"the first {cells} code cells of {NOTEBOOK} ran")
    finally:
        added = sorted(versions(python).keys() - before.keys())
        if added:
            call([python, "-m", "pip", "uninstall", "-q", "-y", *added], content, os.environ)
    return int(bool(changed) or left != ["bertology"] or said[0] != said[1])


def publish(copy, served):
    """A copy of the committed checkout, published and tagged, and a bare repository of it."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    call(["git", "clone", "-q", "--no-hardlinks", ROOT, copy], ROOT, os.environ)
    publishing = [sys.executable, "docs/publish.py", "--repository", ADDRESS, "--tag", TAG]
    call(publishing, copy, os.environ | {"PYTHONPATH": str(copy)})
    call([*git, "commit", "-q", "-a", "-m", "Publish"], copy, os.environ)
    call([*git, "tag", TAG], copy, os.environ)
    call(["git", "clone", "-q", "--bare", copy, served], copy, os.environ)


def versions(python):
    listed = call(
        [python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        ROOT,
        os.environ,
    )
    return {one["name"]: one["version"] for one in json.loads(listed)}


def call(command, folder, environment):
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{command[:4]} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
