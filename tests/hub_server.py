"""A stand-in for the Hugging Face Hub on the loopback interface.

The loading code of the project is to be tested as it is, through the real
``datasets`` and ``transformers`` libraries, on machines without a network.
:class:`LocalHub` answers the requests that those libraries make of the Hub, for
repositories held in memory; :func:`glue_repository_of` and
:func:`tiny_bert_repository` make such repositories.

``huggingface_hub`` reads its settings when it is imported, so the code under
test has to run in a process of its own::

    with LocalHub({"datasets/nyu-mll/glue": (revision, glue_repository_of(tasks))}) as hub:
        subprocess.run([sys.executable, "-c", code], env=hub_environment(hub.url, home))
    assert any(revision in path for _, path in hub.requests)
"""

import functools
import hashlib
import io
import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePath
from urllib.parse import parse_qs, unquote, urlsplit

import safetensors.torch
import torch
import yaml
from conftest import ROOT, python
from datasets import Dataset

from bertology_utils.glue import Task, schema
from bertology_utils.settings import embedded_folder

_RESOLVE = re.compile(r"/(?P<repo>.+?)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
_API = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<repo>[^/]+/[^/]+)"
    r"(?:/(?P<action>revision|tree|paths-info)/(?P<revision>[^/]+)(?:/(?P<path>.+))?)?"
)


class LocalHub:
    """A Hub that serves the given repositories while its ``with`` block runs.

    ``repositories`` maps a name to ``(revision, {path: content})``, or to the HTTP status
    with which every request for it is refused. A dataset's name starts with
    ``datasets/``, a model's has no prefix, as in the Hub's URLs.

    Each repository has that one revision and no other, not even ``main``: code
    that forgets the pinned revision fails here, where on the Hub it would load.
    ``branches`` maps a repository's name to a branch that leads to its revision after all.

    ``url`` is the address for ``HF_ENDPOINT``. ``requests`` lists what was asked
    for as ``(method, path)``, in order, requests answered with 404 included.
    """

    def __init__(
        self,
        repositories: dict[str, tuple[str, dict[str, bytes]] | int],
        branches: dict[str, str] | None = None,
    ):
        self.repositories = repositories
        self.branches = branches or {}
        self.requests: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "LocalHub":
        # A short poll interval, because leaving the block waits for one to pass.
        serve = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        serve.start()
        return self

    def __exit__(self, *exception) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Refused(Exception):
    """An answer without content: a status, and the code by which the Hub says what is missing."""

    def __init__(self, code: str | None = None, status: int = 404):
        self.status = status
        self.headers = {"X-Error-Code": code} if code else {}


class _Handler(BaseHTTPRequestHandler):
    # The default HTTP/1.0 is kept on purpose: no connection outlives its answer,
    # so that a hub whose block has ended is unreachable at once.

    def do_GET(self) -> None:
        # The body is read before answering; closing on unread data resets the connection.
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.hub.requests.append((self.command, self.path))
        try:
            status, headers, content = self._answer(parse_qs(body.decode()))
        except _Refused as error:
            status, headers, content = error.status, error.headers, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_POST = do_GET

    def _answer(self, form: dict[str, list[str]]) -> tuple[int, dict[str, str], bytes]:
        url = urlsplit(self.path)
        if match := _API.fullmatch(url.path):
            prefix = "datasets/" if match["kind"] == "datasets" else ""
            revision, files = self._find(prefix + match["repo"], match["revision"])
            if match["action"] == "tree":
                recursive = "true" in parse_qs(url.query).get("recursive", [])
                result = _tree(files, unquote(match["path"] or ""), recursive)
            elif match["action"] == "paths-info":
                # Paths that do not exist are left out of the answer, which is no error.
                entries = {entry["path"]: entry for entry in _tree(files, "", True)}
                result = [entries[path] for path in form.get("paths", []) if path in entries]
            else:
                siblings = [{"rfilename": path} for path in files]
                result = {"id": match["repo"], "sha": revision, "siblings": siblings}
            return 200, {"Content-Type": "application/json"}, json.dumps(result).encode()
        if match := _RESOLVE.fullmatch(url.path):
            revision, files = self._find(match["repo"], match["revision"])
            path = unquote(match["path"])
            if path not in files:
                raise _Refused("EntryNotFound")
            headers = {"X-Repo-Commit": revision, "ETag": f'"{_blob_id(files[path])}"'}
            return 200, headers | {"Content-Type": "application/octet-stream"}, files[path]
        raise _Refused

    def _find(self, repo: str, revision: str | None) -> tuple[str, dict[str, bytes]]:
        if repo not in self.server.hub.repositories:
            raise _Refused("RepoNotFound")
        found = self.server.hub.repositories[repo]
        if isinstance(found, int):
            raise _Refused("GatedRepo" if found == 403 else None, found)
        others = (None, found[0], self.server.hub.branches.get(repo))
        if (revision and unquote(revision)) not in others:
            raise _Refused("RevisionNotFound")
        return found

    def log_message(self, *arguments) -> None:
        """Say nothing: ``LocalHub.requests`` is the log."""


def _blob_id(content: bytes) -> str:
    """Git's name for a file's content, which the Hub gives as ``oid`` and as ETag."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _tree(files: dict[str, bytes], folder: str, recursive: bool) -> list[dict]:
    """The files and folders below ``folder``, as the Hub's tree API lists them."""
    folders = {str(parent): None for path in files for parent in PurePath(path).parents}
    entries = []
    for path, content in (folders | files).items():
        if PurePath(folder) in PurePath(path).parents[: None if recursive else 1]:
            kind, content = ("directory" if content is None else "file"), content or b""
            entry = {"type": kind, "oid": _blob_id(content), "size": len(content), "path": path}
            entries.append(entry)
    if folder and not entries:
        raise _Refused("EntryNotFound")
    return entries


def hub_environment(url: str, home: str | os.PathLike) -> dict[str, str]:
    """The environment for a process that is to take ``url`` for the Hub.

    It is this process's own, without the settings that could lead past the
    server: tokens, caches, offline switches and proxies. Caches go below ``home``.
    """
    unwanted = re.compile("(HF|HUGGINGFACE|HUGGING_FACE|TRANSFORMERS)_.*|.*_proxy", re.IGNORECASE)
    kept = {name: value for name, value in os.environ.items() if not unwanted.fullmatch(name)}
    kept |= {"HF_ENDPOINT": url, "HF_HOME": os.fspath(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return kept | {"HF_HUB_DISABLE_XET": "1"}  # the server offers plain HTTP only


_TELL = """
import os, time
time.sleep = lambda seconds: None  # between two requests
from bertology_utils import models
from bertology_utils.glue import TASKS, load_rows
from bertology_utils.settings import parse_data, parse_model
def tell(name, load):
    try:
        load()
    except Exception as error:
        print("TOLD", name, type(error).__name__, error, sep="|")
    else:
        print("TOLD", name, "loaded", sep="|")
def model(name):
    return lambda: models.load_encoder(parse_model(name))
def rows():
    load_rows(TASKS["mrpc"], "train", parse_data("hub"))
"""


def told(
    code: str, url: str, home: str | os.PathLike, **changes: str
) -> tuple[list[list[str]], str]:
    """Run code in a process that takes ``url`` for the Hub: what its ``tell(name, load)`` gave, and its stderr.

    The first is a list of [name, "loaded" or the error]; a question would be answered by yes.
    """
    environment = hub_environment(url, home) | {"OMP_NUM_THREADS": "1"} | changes
    run = python(_TELL + code, input="y\n" * 50, env=environment, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = [line.split("TOLD|", 1)[1] for line in run.stdout.splitlines() if "TOLD|" in line]
    return [line.split("|", 1) for line in lines], run.stderr


def glue_repository_of(task: Task, rows: dict[str, list[dict]]) -> dict[str, bytes]:
    """A dataset repository laid out as GLUE's, of the rows of each split of one task."""
    files, name = {}, task.name
    for split, some in rows.items():
        Dataset.from_list(some, features=schema(task)).to_parquet(buffer := io.BytesIO())
        files[f"{name}/{split}-00000-of-00001.parquet"] = buffer.getvalue()
    paths = [{"split": split, "path": f"{name}/{split}-*"} for split in rows]
    card = yaml.safe_dump({"configs": [{"config_name": name, "data_files": paths}]})
    return files | {"README.md": f"---\n{card}---\n# A few rows in GLUE's layout\n".encode()}


@functools.cache
def tiny_bert_repository(layers: int = 2, heads: int = 2, hidden: int = 8) -> dict[str, bytes]:
    """A model repository with a random uncased BERT, its tensors called as in ``bert-base-uncased``'s checkpoint.

    That is ``bert.`` before the encoder's, ``gamma`` and ``beta`` for layer norms, and the
    pretraining heads ``cls.*``.
    """
    from transformers import BertConfig, BertForPreTraining

    sizes = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": hidden}
    config = BertConfig(**sizes, intermediate_size=2 * hidden, pad_token_id=0)
    torch.manual_seed(0)
    state = BertForPreTraining(config).state_dict()
    # Far wider than a fresh initialisation, so that a tensor that is left out or in the wrong place
    # changes the outputs.
    tensors = {}
    for name, tensor in state.items():
        old = name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        tensors[old] = ("LayerNorm.weight" in name) + 0.3 * torch.randn(tensor.shape)
    names, written = ("tokenizer.json", "vocab.txt"), config.to_dict()
    return {name: (embedded_folder() / name).read_bytes() for name in names} | {
        "config.json": json.dumps(written | {"architectures": ["BertForMaskedLM"]}).encode(),
        # transformers refuses a SafeTensors file that does not say which framework it is for.
        "model.safetensors": safetensors.torch.save(tensors, metadata={"format": "pt"}),
        "tokenizer_config.json": json.dumps({"do_lower_case": True}).encode(),
    }


REVISION = "0" * 40  # that a test gives to a repository of its own
BERT = tiny_bert_repository()


def only_this_machine(folder: Path, package: Path = ROOT) -> dict[str, str]:
    """The environment by which no process of a run asks any address but this machine's, through a file in the folder."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text("""
import socket
connect = socket.socket.connect
def local(self, address):
    assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1"), f"asked for {address}"
    return connect(self, address)
socket.socket.connect = local
""")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(package)])}
