"""A split is read from the prepared data, and only if it has not changed since."""

from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.evaluation.split import read_split
from nmt.storage.files import checksum, seal, write_json

LANGUAGES = ("en", "de")


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    for language in LANGUAGES:
        (tmp_path / f"test.{language}").write_text(f"a sentence of {language}\n")
    outputs = {f"test.{language}": checksum(tmp_path / f"test.{language}") for language in LANGUAGES}
    content = {"steps": {"collect test": {"inputs": {}, "outputs": outputs, "result": {}}}}
    write_json(tmp_path / "manifest.json", {**content, "seal": seal(content)})
    return tmp_path


def test_prepared_text_is_read(prepared: Path) -> None:
    split = read_split(prepared, "test", LANGUAGES)
    assert (split.sources, split.references) == (["a sentence of en"], ["a sentence of de"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_that_changed_since_preparation_is_refused(prepared: Path, language: str) -> None:
    path = prepared / f"test.{language}"
    path.write_text(path.read_text().replace("sentence", "sentance"))
    with pytest.raises(UserError, match=f"test.{language} is not what was prepared: run `make data`"):
        read_split(prepared, "test", LANGUAGES)
