"""The stage `data`: what it refuses before anything is read, and what it warns of."""

from pathlib import Path

import pytest

from nmt.commands import data
from nmt.config.compose import compose
from nmt.data.corpora import check_all_is_read
from nmt.data.prepared import require_prepared
from nmt.errors import ConfigError, UserError
from nmt.text.tokenizer import Tokenizer
from tests.integration.toy import pairs, write_pairs


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
        ["data.train=[train.parquet,train.en]"],
    ],
)
def test_files_in_order_are_looked_for(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the clone may have files of these names, which README mentions
    with pytest.raises(UserError, match=r"does not exist or is not a file: check data\.train"):
        data.run(compose(["experiment=own", *words]))


@pytest.mark.parametrize("words", ["data.train=[a.en,a.de]", "data.test=[a.en,a.de]", "data.hold_out=0.1"])
def test_text_for_a_source_that_generates_its_own_is_refused(tmp_path: Path, words: str) -> None:
    config = compose(["experiment=demo", words, f"paths.data={tmp_path}"])
    for command in (data.run, require_prepared):
        with pytest.raises(ConfigError, match=r"^data\.\w+=.* has no effect, because data.source=demo has text of its"):
            command(config)


def test_known_test_set_is_read_with_any_source() -> None:
    check_all_is_read(compose(["experiment=demo", "data.test=['sacrebleu:wmt14/full']"]).data)


def test_two_models_that_share_a_vocabulary_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = write_pairs(tmp_path / "train", pairs(60, 1))
    words = [f"data.train={text}", f"paths.data={tmp_path}", "data.hold_out=0.1"]
    words += ["experiment=own", "tokenizer.vocab_size=90"]
    data.run(compose([*words, "data.corpus=first"]))
    model = (tmp_path / "first" / "tokenizer.model").read_bytes()
    (tmp_path / "two").mkdir()
    Tokenizer(model, model).save(tmp_path / "two")  # as Marian's models have them
    kept = [*words, f"tokenizer.folder={tmp_path}/two"]
    for _ in range(2):
        data.run(compose(kept))
        assert "running again" not in capsys.readouterr().out
    assert Tokenizer.load(tmp_path / "own").models == (model, model)
    require_prepared(compose(kept))


def test_test_text_that_is_also_in_the_training_text_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_pairs(tmp_path / "train", pairs(60, 1))
    words = ["experiment=own", f"data.train={files}", f"data.valid={files}", f"data.test={files}"]
    data.run(compose([*words, f"paths.data={tmp_path}", "tokenizer.vocab_size=90"]))
    warned = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert [line.partition(" pairs, ")[0] for line in warned] == ["warning: of 60 test", "warning: of 60 valid"]
