"""Further references and true word alignments of a test set, prepared with the text."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config.tree import Config
from nmt.data import prepare
from nmt.data.references import alignments_of, read_further_references
from nmt.errors import UserError
from nmt.text.alignments import GoldAlignment, read_alignments, read_gold, write_gold, write_links
from tests.integration.toy import pairs, write_lines, write_sides
from tests.unit.data.corpus import config_in

SOURCES, REFERENCES = ["the dog", "a cat", "two birds"], ["der Hund", "eine Katze", "zwei Vögel"]
FURTHER, GOLD = ["ein Hund", "die Katze", "2 Vögel"], ["0-0 1-1", "0p0 1-1", ""]


def config_with(folder: Path, test: list[str], **data: object) -> Config:
    """Return settings with a toy training text and the given test set."""
    train = write_sides(folder / "train", pairs(120, 1))
    return config_in(folder, 90, **{"train": train, "valid": train, "test": test, **data})


def config_of(folder: Path, *columns: list[str], gold: list[str] | None = None, **data: object) -> Config:
    """Return settings with a test set of these columns, and with its true alignments if they are given."""
    files = [
        write_lines(folder / f"test.{index}", column) for index, column in enumerate(columns or (SOURCES, REFERENCES))
    ]
    known = {"test_alignments": write_lines(folder / "gold", gold)} if gold is not None else {}
    return config_with(folder, files, **known, **data)


def say_nothing(_: str) -> None:
    """Take a line of progress."""


def test_text_files_after_the_second_are_references(tmp_path: Path) -> None:
    config = config_of(tmp_path, SOURCES, REFERENCES, FURTHER)
    prepare.prepare(config, say_nothing)
    assert read_further_references(config.data_folder, "test") == [FURTHER]
    write_lines(config.data_folder / "test.references.jsonl", ["[]"])
    with pytest.raises(UserError, match="is not what was prepared"):
        read_further_references(config.data_folder, "test")
    prepare.prepare(replace(config, data=replace(config.data, test=config.data.test[:2])), say_nothing)
    assert read_further_references(config.data_folder, "test") == []
    assert not (config.data_folder / "test.references.jsonl").exists()
    with pytest.raises(UserError, match=r"data.test has 3 sentences, but a reference has 1 lines"):
        prepare.prepare(config_of(tmp_path, SOURCES, REFERENCES, FURTHER[:1]), say_nothing)


def test_alignments_are_prepared_with_the_test_set(tmp_path: Path) -> None:
    config = config_of(tmp_path, gold=GOLD)
    prepare.prepare(config, say_nothing)
    assert alignments_of(config.data_folder, "test") == list(map(read_gold, GOLD))
    assert alignments_of(config.data_folder, "valid") == []
    prepare.prepare(config_of(tmp_path, gold=[*GOLD[:2], "0-0"]), say_nothing)
    assert alignments_of(config.data_folder, "test")[2] == read_gold("0-0")
    prepare.prepare(config_of(tmp_path, gold=GOLD, tag="<de>"), say_nothing)  # a further word of the source
    assert alignments_of(config.data_folder, "test") == list(map(read_gold, ["1-0 2-1", "1p0 2-1", ""]))
    write_lines(config.data_folder / "test.alignments", ["0-0"] * 3)
    with pytest.raises(UserError, match="is not what was prepared"):
        alignments_of(config.data_folder, "test")
    prepare.prepare(config_of(tmp_path), say_nothing)
    assert alignments_of(config.data_folder, "test") == []
    assert not (config.data_folder / "test.alignments").exists()


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
        prepare.prepare(config_of(tmp_path, gold=gold), say_nothing)


def test_sure_and_possible_links_are_read_and_written(tmp_path: Path) -> None:
    found = GoldAlignment(frozenset({(0, 0), (10, 3)}), frozenset({(0, 0), (10, 3), (2, 1)}))
    assert read_gold("0-0 2p1 10-3") == found
    assert write_gold(found) == "0-0 2p1 10-3"
    assert write_links([(0, 0), (2, 1)]) == "0-0 2-1"
    assert write_gold(found.reversed()) == "0-0 1p2 3-10"
    for line in ("0", "0-", "-1-0", "0-0-0", "٣-٠", "0-0,1-1", "0-" + "9" * 5000):
        with pytest.raises(UserError, match=r"gold, line 2: .* is no link") as error:
            list(read_alignments(Path(write_lines(tmp_path / "gold", ["0-0", line]))))
        assert len(str(error.value)) < 500
