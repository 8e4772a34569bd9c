"""The filter that compares the numbers of both sides, against sentences in several notations."""

import pytest

from nmt.config.data import DataConfig
from nmt.data.filters.numbers import same_numbers
from nmt.data.filters.pipeline import FilterChain, setting_of, training_filters


@pytest.mark.parametrize(
    ("source", "target", "same"),
    [
        ("1,234.5 of 10", "10 von 1.234,5", True),
        ("1,000,000 and 1\u202f000", "1.000.000 und 1 000", True),
        ("3.14", "3,14", True),
        ("at 8:00", "um 8 Uhr", True),
        ("07", "7", True),
        ("no number", "keine Zahl", True),
        ("in 2012 100 people", "100 Menschen in 2012", True),
        ("١٢", "12", True),
        ("١٬٢٣٤٫٥", "1,234.5", True),
        ("1,00,000 and १२,३४,५६७.५", "100000 und 1.234.567,5", True),
        ("1.50 of 1,234.50", "1,5 von 1.234,5", True),
        ("at 8:30 on 20/10/2012", "am 20.10.2012 um 8.30 Uhr", True),
        ("1.000", "1000", True),
        ("1.000", "1", False),
        ("1.500", "1.5", False),
        ("150", "15", False),
        ("12", "21", False),
        ("2 and 2", "2", False),
        ("1000", "100", False),
        ("two", "2", False),
        ("9" * 5000, "9" * 5000, True),
    ],
)
def test_numbers_agree_whatever_separates_their_digits(source: str, target: str, same: bool) -> None:
    assert same_numbers(source, target) is same
    assert same_numbers(target, source) is same


def test_pairs_with_different_numbers_are_dropped_before_equal_pairs_are() -> None:
    config = DataConfig(match_numbers=True, deduplicate=True)
    chain = FilterChain(training_filters(config), config)
    assert chain.apply([("1", "eins"), ("1", "1"), ("1", "eins")]) == [("1", "1")]
    assert chain.dropped["numbers"] == 2
    assert list(chain.dropped)[-2:] == ["numbers", "duplicates"]
    assert setting_of("numbers") == "match_numbers"
    assert "numbers" not in [each.name for each in training_filters(DataConfig())]
