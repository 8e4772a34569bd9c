"""The examples of ARCHITECTURE work: code of the user's own, named by a setting."""

import re
from pathlib import Path

import pytest

from tests.integration.toy import succeed

DOCUMENT = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
OPTIMIZER, SOURCE, FORMAT = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the examples of the document in modules of their own."""
    for name, code in {"own_optimizer": OPTIMIZER, "own_source": SOURCE, "own_format": FORMAT}.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_trains_and_resumes_on_a_source_and_with_an_optimizer_of_the_user(here: Path) -> None:
    small = ["model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2", "tokenizer.vocab_size=60"]
    budget = ["training.batch_tokens=300", "training.valid_every=2", "training.save_every=2"]
    words = [*small, *budget, "data.source=own_source:COUNTING", "training.optimizer=own_optimizer:lookahead"]
    words += ["data.corpus=counting", "name=own", "training.valid_sentences=0", "averaging.last=1"]
    succeed(["data", *words])
    succeed(["train", *words, "training.steps=2"])
    words.append("training.steps=4")
    assert "going on from step 2" in succeed(["train", *words])
    succeed(["average", *words])
    assert succeed(["eval", *words, "decoding.beam=1", "decoding.extra_length=2"])
