"""The stage `data`: what it refuses before anything is read."""

from pathlib import Path

import pytest

from nmt.commands import data
from nmt.config.compose import compose
from nmt.errors import UserError


@pytest.mark.parametrize(
    "words",
    [
        ["data.train=[train.de,train.en]"],
        ["data.train=[train.fr,train.en.gz]"],
        ["data.train=[a,b]", "data.valid=[valid.DE.xz,valid.txt]"],
        ["data.train=[train.en,train.de]", "data.source_lang=de", "data.target_lang=en"],
    ],
)
def test_files_in_each_others_place_are_refused(words: list[str]) -> None:
    with pytest.raises(UserError, match=r"would be read as .* put the source side first, or set the languages"):
        data.run(compose(["experiment=own", *words]))


@pytest.mark.parametrize(
    "words",
    [
        ["data.train=[train.en,train.de]"],
        ["data.train=[source.txt,target.txt]"],
        ["data.train=[en,de]"],
        ["data.train=[train.fr,train.en]", "data.source_lang=fr", "data.target_lang=en"],
    ],
)
def test_files_in_order_are_looked_for(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the clone may have files of these names, which README mentions
    with pytest.raises(UserError, match=r"does not exist or is not a file: check data\.train"):
        data.run(compose(["experiment=own", *words]))
