"""Word alignments are scored as Och and Ney (2003) define it."""

from dataclasses import asdict

import pytest

from nmt.config.schema import DecodingConfig
from nmt.errors import UserError
from nmt.evaluation.finding import Findings
from nmt.features.alignments.error_rate import AlignmentErrors, AlignmentScore, LinkCounts, chosen_score, notable
from nmt.features.alignments.linking import AlignmentSource
from nmt.text.alignments import read_gold

FIRST = AlignmentSource(1, 0, "input")


def links(text: str) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, _, j in (link.partition("-") for link in text.split())]


@pytest.mark.parametrize(
    ("gold", "found", "error_rate", "precision", "recall"),
    [
        (["0-0 1-1"], ["0-0 1-1"], 0, 100, 100),
        (["0-0 1-1"], ["0-1 1-0"], 100, 0, 0),
        (["0-0 1-1"], [""], 100, 0, 0),
        # |A| = 3, |S| = 2, |A and S| = 1, |A and P| = 2: 1 - (1 + 2) / (3 + 2)
        (["0-0 1-1 2p1"], ["0-0 2-1 2-0"], 40, 200 / 3, 50),
        # a possible link costs nothing where it is found, nor where it is not
        (["0-0 1p0"], ["0-0 1-0"], 0, 100, 100),
        (["0-0 1p0"], ["0-0"], 0, 100, 100),
        # counts are summed over sentences: |A| = 3, |S| = 3, |A and S| = 2 = |A and P|
        (["0-0 1-1", "0-0"], ["0-0 1-1", "0-1"], 100 / 3, 200 / 3, 200 / 3),
        (["0-0 0-0"], ["0-0"], 0, 100, 100),
        ([""], [""], 0, 0, 0),
    ],
)
def test_error_rates_are_those_calculated_by_hand(
    gold: list[str], found: list[str], error_rate: float, precision: float, recall: float
) -> None:
    counts = LinkCounts()
    for truth, line in zip(gold, found, strict=True):
        counts.add(links(line), read_gold(truth))
    score = counts.score(FIRST)
    assert (score.error_rate, score.precision, score.recall) == pytest.approx((error_rate, precision, recall))


def test_a_link_that_is_found_twice_counts_once() -> None:
    counts = LinkCounts()
    counts.add([(0, 0), (0, 0)], read_gold("0-0"))
    assert counts == LinkCounts(1, 1, 1, 1)


SCORES = [
    AlignmentScore(layer, head, "output", 10.0 * layer + head, 0.0, 0.0)
    for layer in range(4)
    for head in range(9 if layer else 1)
]


@pytest.mark.parametrize(
    ("settings", "layer", "head"),
    [({}, 0, 0), ({"alignment_layer": 3}, 3, 0), ({"alignment_layer": 1, "alignment_head": 8}, 1, 8)],
)
def test_settings_choose_layer_and_head(settings: dict[str, int], layer: int, head: int) -> None:
    score = chosen_score(SCORES, DecodingConfig(alignment_state="output", **settings))  # type: ignore[arg-type, call-arg]
    assert (score.layer, score.head) == (layer, head)


@pytest.mark.parametrize("settings", [{"alignment_layer": 4}, {"alignment_layer": 1, "alignment_head": 9}])
def test_a_layer_or_head_that_the_model_lacks_is_refused(settings: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"decoding\.alignment_(layer=4|head=9), but the model has [38]"):
        chosen_score(SCORES, DecodingConfig(alignment_state="output", **settings))  # type: ignore[arg-type, call-arg]


def test_means_and_the_best_heads_are_notable() -> None:
    found = [(score.layer, score.head) for score in notable(SCORES)]
    assert found == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 0), (3, 0)]


def test_error_rates_are_read_as_they_were_written() -> None:
    found = Findings(alignments=AlignmentErrors(SCORES))
    assert Findings.from_json(found.to_json()) == found
    assert found.to_json()["alignments"] == [asdict(score) for score in SCORES]
    assert found.of(AlignmentErrors) == tuple(SCORES)
    assert Findings().of(AlignmentErrors) is None
