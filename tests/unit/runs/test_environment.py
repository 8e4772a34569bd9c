"""The environment file: what could make another run differ, and nothing secret."""

import importlib.metadata
import json
import platform
import subprocess
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest
import torch

import nmt
from nmt.compute.cores import usable_cores
from nmt.config.tree import Config
from nmt.data.manifest import Task, read_manifest, run_tasks
from nmt.errors import UserError
from nmt.runs import environment as module
from nmt.runs.environment import Environment, GitState, environment, read_environment
from nmt.storage.files import checksum, record_of, write_json


def prepare_text(folder: Path) -> None:
    """Make a corpus with one task that is done."""
    task = Task("collect train", {}, ["train.en"], lambda: {"size": (folder / "train.en").write_bytes(b"a dog\n")})
    run_tasks(read_manifest(folder), [task], {"source": "demo"}, lambda _: None)


def test_the_environment_describes_code_machine_and_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["nmt", "train", "seed=7"])
    prepare_text(tmp_path)

    found = json.loads(json.dumps(asdict(environment(Config(seed=7), tmp_path))))

    assert found["nmt"] == nmt.__version__
    assert found["command"] == ["nmt", "train", "seed=7"]
    assert found["seed"] == 7
    assert found["python"] == platform.python_version()
    assert found["packages"]["torch"] == importlib.metadata.version("torch")
    assert found["packages"]["safetensors"] == importlib.metadata.version("safetensors")
    assert found["cuda"] == torch.version.cuda
    assert found["threads"] == torch.get_num_threads()
    assert found["cores"] == usable_cores()
    assert len(found["devices"]) == torch.cuda.device_count()
    assert found["cpu"]
    text = sha256(b"a dog\n").hexdigest()
    assert found["data"] == {"manifest": checksum(tmp_path / "manifest.json"), "checksums": {"train.en": text}}


def test_environment_is_read_as_it_was_written(tmp_path: Path) -> None:
    prepare_text(tmp_path)
    written = environment(Config(seed=7), tmp_path)
    write_json(tmp_path / "environment.json", asdict(written))
    assert read_environment(tmp_path / "environment.json") == written


def test_a_resumed_run_keeps_what_was_different_before() -> None:
    first = Environment(cpu="A", command=["train"])
    again = Environment(cpu="A", command=["train", "training.steps=9"])
    elsewhere, back = Environment(cpu="B", command=["train"]), Environment(cpu="A", command=["train"])
    assert again.after(first) == again
    moved = elsewhere.after(again.after(first))
    assert (moved.cpu, moved.earlier) == ("B", [again])
    assert [each.cpu for each in back.after(moved).earlier] == ["A", "B"]
    assert record_of(Environment, asdict(moved)) == moved


@pytest.mark.parametrize("content", [[], 3, {"git": "abc"}, {"data": {"checksums": {}}}])
def test_a_damaged_environment_file_is_refused_by_name(tmp_path: Path, content: object) -> None:
    write_json(tmp_path / "environment.json", content)
    with pytest.raises(UserError, match=r"environment\.json does not describe"):
        read_environment(tmp_path / "environment.json")


def test_no_environment_variables_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "very-secret-key")
    monkeypatch.setenv("HF_TOKEN", "very-secret-token")
    assert "very-secret" not in json.dumps(asdict(environment(Config(), tmp_path)))


def test_a_missing_manifest_is_no_error_but_a_damaged_one_is(tmp_path: Path) -> None:
    assert environment(Config(), tmp_path).data is None
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UserError, match=r"manifest\.json cannot be read"):
        environment(Config(), tmp_path)


def test_the_git_state_of_a_repository_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    file = tmp_path / "environment.py"
    file.write_text("one\n")
    git("init", "-q")
    assert module._git_state(tmp_path) is None  # installed below a repository that does not hold it
    git("add", ".")
    git("commit", "-q", "-m", "one")
    assert module._git_state(tmp_path) == GitState(git("rev-parse", "HEAD"), dirty=False)
    file.write_text("two\n")
    assert module._git_state(tmp_path) == GitState(git("rev-parse", "HEAD"), dirty=True)
    monkeypatch.setenv("PATH", "")
    assert module._git_state(tmp_path) is None
