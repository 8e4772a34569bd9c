"""Several settings change together, in any order."""

from itertools import permutations
from typing import Any

import pytest

from nmt.config.keys import ELSEWHERE, all_keys, value_of, with_values
from nmt.config.tree import Config
from nmt.errors import ConfigError


@pytest.mark.parametrize(
    "values",
    [
        {"training.device_tokens": 9000, "training.batch_tokens": 9000},  # in one group
        {"training.keep_last": 20, "averaging.last": 20},  # in two
        {"training.batch_tokens": 60, "data.max_pieces": 50},
    ],
)
def test_settings_that_fit_only_together_are_accepted_in_any_order(values: dict[str, Any]) -> None:
    for order in permutations(values.items()):
        config = with_values(Config(), dict(order))
        assert {key: value_of(config, key) for key in values} == values


def test_names_of_other_toolkits_lead_to_settings_that_exist() -> None:
    assert ELSEWHERE.keys() <= all_keys().keys()
    words = " ".join(ELSEWHERE.values()).split()
    assert len({*words}) == len(words)
    assert not {*words} & all_keys().keys()


def test_settings_that_do_not_fit_are_refused_in_any_order() -> None:
    values = {"training.device_tokens": 9001, "training.batch_tokens": 9000, "seed": 3}
    for order in permutations(values.items()):
        with pytest.raises(ConfigError, match=r"training\.device_tokens=9001 is more than the global"):
            with_values(Config(), dict(order))
