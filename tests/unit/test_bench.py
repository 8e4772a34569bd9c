"""The benchmark harness counts tokens correctly, measures nmt, and names a missing peer."""

import importlib
import json
from itertools import islice
from pathlib import Path

import pytest

from nmt.compute.cores import cpu_description
from nmt.config.compose import compose
from nmt.config.saved import to_yaml
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, write
from tests.integration.toy import pairs
from tests.quick_processes import Running, run_script
from tests.unit.small_models import make_model, make_tokenizer

BENCH = Path(__file__).parents[2] / "scripts" / "bench"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return settings that name a toy corpus."""
    folder = tmp_path_factory.mktemp("bench")
    overrides = [
        "data=files",
        "data.corpus=toy",
        f"paths.data={folder}/data",
        "tokenizer.vocab_size=90",
        "runtime.workers=1",
    ]
    for split, count, seed in (("train", 400, 1), ("valid", 20, 2), ("test", 20, 3)):
        sides = list(zip(*pairs(count, seed), strict=True))
        for language, lines in zip(("en", "de"), sides, strict=True):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        overrides.append(f"data.{split}=[{folder}/{split}.en,{folder}/{split}.de]")
    return overrides


@pytest.mark.slow
def test_nmt_is_measured_and_a_missing_peer_is_named(tmp_path: Path, settings: list[str]) -> None:
    output = tmp_path / "figures.json"
    options = ["--shapes=tiny", "--batch-tokens=600", "--rounds=1", "--seconds=0.2", "--warmup=0", "--threads=1"]
    options += ["--engines=ours,eole", "--precisions=fp32", f"--peers={tmp_path}", f"--output={output}"]
    options.append(f"--record={tmp_path}/record.jsonl")
    options.append("--cpu=avx2")
    result = Running(run_script, BENCH, "train", *options, *settings).wait()
    assert result.returncode == 0, result.stderr
    nmt, peer = json.loads(output.read_text(encoding="utf-8"))["shapes"]["tiny"]
    (measured,) = nmt["rounds"]
    rate = (measured["source_tokens"] + measured["target_tokens"]) / measured["seconds"]
    assert nmt["tokens_per_second"] == pytest.approx(rate)
    assert 0 < nmt["share_of_peak"] < 1
    assert nmt["memory"] > 50_000_000
    assert peer["refused"] == "not installed: scripts/bench setup eole"
    assert "eole fp32: not installed" in result.stdout
    assert f"{cpu_description()}, limited to avx2" in result.stdout


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            "echo \"ModuleNotFoundError: No module named 'eole'\" >&2; exit 1",
            "lacks the package eole: run scripts/bench setup eole",
        ),
        ("exec sleep 60", "had no result after 0.2 s, and was ended"),
        ("echo out of luck >&2; exit 3", "failed with exit code 3: out of luck"),
    ],
    ids=["lacks a package", "hangs", "fails"],
)
def test_a_peer_without_a_result_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    engines = importlib.import_module("engines")
    python = tmp_path / "eole" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    seconds = 0.2 if "sleep" in program else 60.0
    found = engines.Bench(tmp_path, threads=1, record=tmp_path / "record.jsonl", timeout=seconds).run(
        "eole", {"kind": "speed"}
    )
    assert found == {"refused": reason}
    (line,) = (tmp_path / "record.jsonl").read_text().splitlines()
    assert json.loads(line) == {"engine": "eole", "precision": "", "kind": "speed", "refused": reason}


@pytest.mark.slow
def test_phases_of_a_step_fill_its_time(tmp_path: Path, settings: list[str]) -> None:
    output = tmp_path / "figures.json"
    options = ["--shape=tiny", "--batch-tokens=600", "--seconds=0.2", "--warmup=0", "--threads=1"]
    options += ["--precisions=fp32", f"--output={output}", f"--record={tmp_path}/record.jsonl"]
    result = Running(run_script, BENCH, "breakdown", *options, *settings).wait()
    assert result.returncode == 0, result.stderr
    figures = json.loads(output.read_text(encoding="utf-8"))
    phases = figures["breakdown"]["fp32"]["milliseconds"]
    assert all(milliseconds > 0 for milliseconds in phases.values()), phases
    assert figures["pipeline"]["updates"] > 0


def test_a_checkpoint_is_refused_if_it_is_missing_or_has_another_tokenizer(tmp_path: Path, settings: list[str]) -> None:
    missing = Running(run_script, BENCH, "decode", "--checkpoint", str(tmp_path / "none"), *settings).wait()
    assert missing.returncode == 2
    assert missing.stderr.startswith(f"bench: {tmp_path}/none")
    tokenizer = make_tokenizer()
    other = Checkpoint(
        meta=CheckpointMeta(step=1), weights=make_model(tokenizer).state_dict(), tokenizer_files=tokenizer.files,
        config_text=to_yaml(compose(settings)),
    )  # fmt: skip
    write(tmp_path / "other", other)
    found = Running(run_script, BENCH, "decode", "--checkpoint", str(tmp_path / "other"), *settings).wait()
    assert found.returncode == 2
    assert "other has another tokenizer than the corpus" in found.stderr


def test_padding_is_not_counted_as_tokens(tmp_path: Path, settings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.syspath_prepend(str(BENCH / "drivers"))
    import corpus
    import padded

    opened = corpus.open_corpus([*settings, *corpus.shape_overrides("tiny", 600)], threads=1)
    corpus.write_text(opened, tmp_path)
    text = {
        side: (tmp_path / f"sorted.{side}").read_text(encoding="utf-8").splitlines() for side in ("source", "target")
    }
    expected = [sum(len(line.split()) + 1 for line in text[side]) for side in ("source", "target")]
    counted, sentences = [0, 0], 0
    batches = padded.training_batches(opened.config.data_folder, 600, opened.config.seed)
    for batch in islice(batches, 1000):
        assert batch.counts.target == int((batch.labels >= 0).sum()) <= 600
        assert batch.counts.source == int(batch.source_mask.sum()) <= 600
        counted = [counted[0] + batch.counts.source, counted[1] + batch.counts.target]
        sentences += len(batch.source)
        if sentences == len(text["source"]):
            break
    assert counted == expected
