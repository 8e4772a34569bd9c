"""Word alignments are read from Pharaoh format, and written in it."""

from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.text.alignments import GoldAlignment, read_alignments, read_gold, write_gold, write_links


def gold(sure: set[tuple[int, int]], possible: set[tuple[int, int]]) -> GoldAlignment:
    return GoldAlignment(frozenset(sure), frozenset(sure | possible))


def test_sure_and_possible_links_are_read_and_written() -> None:
    assert read_gold("0-0 2p1 10-3") == gold({(0, 0), (10, 3)}, {(2, 1)})
    assert write_gold(gold({(0, 0), (10, 3)}, {(2, 1)})) == "0-0 2p1 10-3"
    assert read_gold("") == gold(set(), set())
    assert write_links([(0, 0), (2, 1)]) == "0-0 2-1"


def test_the_other_direction_exchanges_the_words() -> None:
    assert gold({(0, 1)}, {(2, 3)}).reversed() == gold({(1, 0)}, {(3, 2)})


@pytest.mark.parametrize("line", ["0", "0-", "-1-0", "0-0-0", "a-b", "0–0", "٣-٠", "0?1", "0-0,1-1", "0-" + "9" * 5000])
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no link"):
        read_gold(line)
    path = tmp_path / "gold"
    path.write_text(f"0-0\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"gold, line 2: .* is no link") as error:
        list(read_alignments(path))
    assert len(str(error.value)) < 300 + len(str(path))
