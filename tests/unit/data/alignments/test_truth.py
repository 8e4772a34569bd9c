"""The true word alignments of a test set: from a file in Pharaoh format, prepared with the text."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config.data import DataConfig
from nmt.config.tree import Config
from nmt.data import prepare
from nmt.data.gold_alignments import alignments_of
from nmt.data.prepared import require_text
from nmt.errors import ConfigError, UserError
from nmt.text.alignments import read_gold
from tests.unit.data.test_further_references import TEST, config_with, say_nothing, write

GOLD = ["0-0 1-1", "0p0 1-1", ""]


def config_of(folder: Path, gold: list[str], **data: object) -> Config:
    files = [write(folder / f"test.{index}", [row[index] for row in TEST]) for index in range(2)]
    return config_with(folder, files, test_alignments=write(folder / "gold", gold), **data)


def with_file(config: Config, name: str) -> Config:
    return replace(config, data=replace(config.data, test_alignments=name))


def test_alignments_are_prepared_with_the_test_set(tmp_path: Path) -> None:
    config = config_of(tmp_path, GOLD)
    prepare.prepare(config, say_nothing)
    assert alignments_of(config.data_folder, "test") == list(map(read_gold, GOLD))
    assert alignments_of(config.data_folder, "valid") == []
    write(tmp_path / "gold", [*GOLD[:2], "0-0"])
    done: list[str] = []
    prepare.prepare(config, done.append)
    assert [line for line in done if line.startswith("align")][-1].startswith("align test: done")
    assert alignments_of(config.data_folder, "test")[2] == read_gold("0-0")
    prepare.prepare(with_file(config, ""), say_nothing)
    assert alignments_of(config.data_folder, "test") == []
    assert not (config.data_folder / "test.alignments").exists()


def test_a_tag_counts_as_a_word_of_the_source(tmp_path: Path) -> None:
    config = config_of(tmp_path, GOLD, tag="<de>")
    prepare.prepare(config, say_nothing)
    assert alignments_of(config.data_folder, "test") == list(map(read_gold, ["1-0 2-1", "1p0 2-1", ""]))


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (GOLD[:2], "data.test_alignments has 2 lines, but data.test has 3 pairs"),
        ([*GOLD[:2], "2-0"], "line 3, has a link 2-0, but the sentences have 2 and 2 words"),
        ([GOLD[0], "0:0", ""], "gold, line 2: '0:0' is no link"),
    ],
)
def test_alignments_of_other_sentences_are_refused(tmp_path: Path, gold: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        prepare.prepare(config_of(tmp_path, gold), say_nothing)


def test_changed_alignments_are_refused(tmp_path: Path) -> None:
    config = config_of(tmp_path, GOLD)
    prepare.prepare(config, say_nothing)
    write(config.data_folder / "test.alignments", ["0-0"] * 3)
    with pytest.raises(UserError, match="is not what was prepared"):
        alignments_of(config.data_folder, "test")


@pytest.mark.parametrize("settings", [{"source": "demo"}, {"test": [], "hold_out": 0.1}])
def test_alignments_need_a_test_set(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="needs a test set of your own"):
        DataConfig(test_alignments="gold", **settings)  # type: ignore[arg-type]


def test_other_alignments_of_the_test_text_are_refused(tmp_path: Path) -> None:
    config = config_of(tmp_path, GOLD)
    first, second = tmp_path / "gold", write(tmp_path / "second", ["0-0", "", ""])
    prepare.prepare(with_file(config, ""), say_nothing)
    with pytest.raises(UserError, match=r"test_alignments=.*gold"):
        require_text(config, ["test"])
    prepare.prepare(config, say_nothing)
    require_text(config, ["test"])
    with pytest.raises(UserError, match=r"test_alignments=.*second"):
        require_text(with_file(config, second), ["test"])
    first.unlink()
    require_text(config, ["test"])
