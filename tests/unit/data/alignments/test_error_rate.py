"""Word alignments are scored as Och and Ney (2003) define it."""

import pytest

from nmt.evaluation.alignment_error import score_links
from nmt.text.alignments import read_gold


@pytest.mark.parametrize(
    ("gold", "found", "error_rate", "precision", "recall"),
    [
        (["0-0 1-1"], ["0-0 1-1"], 0, 100, 100),
        (["0-0 1-1"], [""], 100, 0, 0),
        # |A| = 3, |S| = 2, |A and S| = 1, |A and P| = 2: 1 - (1 + 2) / (3 + 2)
        (["0-0 1-1 2p1"], ["0-0 2-1 2-0"], 40, 200 / 3, 50),
        # a possible link costs nothing if it is found, nor if it is not
        (["0-0 1p0"], ["0-0 1-0"], 0, 100, 100),
        (["0-0 1p0"], ["0-0"], 0, 100, 100),
        # counts are summed over sentences: |A| = 3, |S| = 3, |A and S| = 2 = |A and P|
        (["0-0 1-1", "0-0"], ["0-0 1-1", "0-1"], 100 / 3, 200 / 3, 200 / 3),
        (["0-0"], ["0-0 0-0"], 0, 100, 100),
        ([""], [""], 0, 0, 0),
    ],
)
def test_error_rates_are_those_calculated_by_hand(
    gold: list[str], found: list[str], error_rate: float, precision: float, recall: float
) -> None:
    links = ([tuple(map(int, link.split("-"))) for link in line.split()] for line in found)
    score = score_links(zip(links, map(read_gold, gold), strict=True))  # type: ignore[arg-type]
    assert (score.error_rate, score.precision, score.recall) == pytest.approx((error_rate, precision, recall))
