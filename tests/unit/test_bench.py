"""scripts/bench uses corpora as `nmt data` prepares them, and refuses options that it cannot follow."""

import runpy
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.integration.toy import pairs, succeed, write_pairs

BENCH = Path(__file__).parents[2] / "scripts" / "bench"


@pytest.fixture(autouse=True)
def _import_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_a_corpus_with_derived_settings_stays_as_prepared(tmp_path: Path) -> None:
    files = f"data.train={write_pairs(tmp_path / 'train', pairs(300, 1))}"
    words = ["experiment=own", files, f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs"]
    succeed(["data", *words])
    manifest = tmp_path / "data" / "own" / "manifest.json"
    before = manifest.read_bytes()
    corpus = import_module("corpus")
    assert corpus.open_corpus([*words, *corpus.COMMON], threads=1).config.data_folder == manifest.parent
    assert manifest.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["machine", "name=x"], "unrecognized arguments: name=x"),
        (["train", "--rounds", "0"], "argument --rounds: it must be at least 1"),
        (["train", "--threads", "0"], "argument --threads: it must be at least 1"),
    ],
)
def test_wrong_options_are_refused(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(BENCH / "__main__.py"))["main"]()
    assert message in capsys.readouterr().err
