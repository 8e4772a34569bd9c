"""The stage `data`: what it refuses before anything is read, and what it warns of."""

from pathlib import Path

import pytest

from nmt.commands import data
from nmt.config.compose import compose
from nmt.errors import UserError
from tests.integration.toy import pairs


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


def test_files_of_other_languages_than_those_of_the_settings_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, language in enumerate(("fr", "es")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs(60, 1))
        (tmp_path / f"train.{language}").write_text(lines, encoding="utf-8")
    words = [f"data.train=[{tmp_path}/train.fr,{tmp_path}/train.es]", f"paths.data={tmp_path}", "data.hold_out=0.1"]
    words += ["experiment=own", "tokenizer.vocab_size=90"]
    data.run(compose(words))
    warned = capsys.readouterr().err
    assert "are named after fr and es, but scores, reports and servers go by data.source_lang=en" in warned
    assert "give data.source_lang=fr data.target_lang=es\n" in warned
    for languages in (("fr", "es-MX"), ("fra", "spa")):
        data.run(compose([*words, f"data.source_lang={languages[0]}", f"data.target_lang={languages[1]}"]))
        assert "are named after" not in capsys.readouterr().err
