"""scripts/bench uses corpora as `nmt data` prepares them."""

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
