"""A small corpus that a small model learns, prepared once for all tests that train on it."""

from pathlib import Path

import pytest

from tests.integration.toy import pairs, succeed, write_sides


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with plain files of train, valid and test in both languages."""
    folder = tmp_path_factory.mktemp("corpus")
    for seed, (split, count) in enumerate({"train": 600, "valid": 40, "test": 40}.items()):
        write_sides(folder / split, pairs(count, seed))
    return folder


@pytest.fixture(scope="session")
def settings(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return overrides for a tiny run on the corpus, with its data already prepared."""
    overrides = [
        "data=files", "data.corpus=toy", f"paths.data={tmp_path_factory.mktemp('data')}",
        *(f"data.{split}=[{corpus}/{split}.en,{corpus}/{split}.de]" for split in ("train", "valid", "test")),
        "data.max_pieces=60", "tokenizer.vocab_size=120", "name=toy",
        "model.layers=1", "model.d_model=32", "model.d_ff=64", "model.heads=2",
        "training.steps=40", "training.batch_tokens=400", "training.warmup_steps=10", "training.learning_rate=5e-3",
        "training.log_every=1", "training.valid_every=20", "training.save_every=10", "training.valid_sentences=8",
        "averaging.last=2", "runtime.threads=1", "runtime.device=cpu", "runtime.precision=fp32",
    ]  # fmt: skip
    succeed(["data", *overrides])
    return overrides


@pytest.fixture(scope="session")
def whole(settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the outputs of an uninterrupted run."""
    outputs = tmp_path_factory.mktemp("whole")
    succeed(["train", *settings, f"paths.outputs={outputs}"])
    return outputs
