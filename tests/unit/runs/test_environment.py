"""The environment file: what could make another run differ, and nothing secret."""

import importlib.metadata
import json
import subprocess
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest
import torch

import nmt
from nmt.config.tree import Config
from nmt.data.manifest import Task, read_manifest, run_tasks
from nmt.errors import UserError
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.environment import _commit, environment, read_environment
from nmt.storage.files import checksum, write_json


def test_the_environment_describes_code_machine_and_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["nmt", "train", "seed=7"])
    monkeypatch.setenv("WANDB_API_KEY", "very-secret-key")
    task = Task("collect train", {}, ["train.en"], lambda: {"size": (tmp_path / "train.en").write_bytes(b"a dog\n")})
    run_tasks(read_manifest(tmp_path), [task], {"source": "demo"}, lambda _: None)

    described = environment(Config(seed=7), tmp_path, CheckpointRecord("base", 7), "bf16")

    file = tmp_path / "environment.json"
    write_json(file, described)
    assert "very-secret" not in file.read_text()
    found = json.loads(file.read_text())
    assert (found["nmt"], found["command"], found["seed"]) == (nmt.__version__, ["nmt", "train", "seed=7"], 7)
    assert found["packages"]["torch"] == importlib.metadata.version("torch")
    text = sha256(b"a dog\n").hexdigest()
    assert found["data"] == {"manifest": checksum(tmp_path / "manifest.json"), "checksums": {"train.en": text}}
    read = read_environment(file)
    assert asdict(read).items() <= described.items()
    assert (read.precision, read.threads, bool(read.cpu)) == ("bf16", torch.get_num_threads(), True)
    (tmp_path / "manifest.json").unlink()
    assert environment(Config(), tmp_path, None, "")["data"] is None


@pytest.mark.parametrize("content", [[], 3, {"threads": "abc"}])
def test_a_damaged_environment_file_is_refused_by_name(tmp_path: Path, content: object) -> None:
    write_json(tmp_path / "environment.json", content)
    with pytest.raises(UserError, match=r"environment\.json does not describe"):
        read_environment(tmp_path / "environment.json")


def test_the_commit_of_a_clone_is_recorded(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    (tmp_path / "file").write_text("one\n")
    assert _commit(tmp_path) is None
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    assert _commit(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "file").write_text("two\n")
    assert _commit(tmp_path) == f"{git('rev-parse', 'HEAD')}-dirty"
