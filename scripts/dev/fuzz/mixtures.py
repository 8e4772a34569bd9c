"""Target: the stages and weights of a mixture, and the plan of batches that follows from them."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.campaign import Attempt
from fuzz.strategies import json_values, texts
from nmt.config.data import DataConfig, corpora_of
from nmt.data.batches import PairLengths
from nmt.data.batching import Batching
from nmt.features.mixtures.rounds import RoundPlanner, stage_shares
from nmt.features.mixtures.settings import training_stages

NAMES = ("main", "a", "b")
BATCH_TOKENS = 60
WEIGHTS = [1.0, 3.0, 1e-9, 1e9, 0.0, -1.0, float("nan"), float("inf")]


def plans(_: Path) -> Attempt:
    """Try stages, weights and sizes: a plan keeps to its stage and its budget, or there is one error."""

    def check(value: tuple[list[str], Any, list[float], float, list[int]]) -> None:
        stages, entry, weights, temperature, sizes = value
        mixture = {
            name: {"train": ["x", "y"], "weight": weight} for name, weight in zip(NAMES[1:], weights, strict=False)
        }
        if entry is not None:
            mixture["b"] = entry
        settings = {"mixture": mixture, "stages": stages, "weight": weights[-1], "temperature": temperature}
        data = DataConfig(**settings)  # type: ignore[arg-type]
        corpora = list(corpora_of(data))
        sizes = sizes[: len(corpora)]
        starts = np.cumsum([0, *sizes])
        random = np.random.default_rng(sizes)
        lengths = PairLengths(*(random.integers(1, 80, starts[-1], dtype=np.int32) for _ in range(2)))
        tokens = dict(zip(corpora, sizes, strict=True))
        planner = RoundPlanner(lengths, sizes, stage_shares(data, tokens), Batching(BATCH_TOKENS, seed=1))
        done = 0
        for number in range(3):
            plan = planner(number)
            assert len(plan) > 0
            stage = next(each for each in training_stages(data) if each.until is None or done < each.until)
            for index in range(len(plan)):
                pairs = plan[index]
                assert {corpora[i] for i in np.searchsorted(starts, pairs, "right") - 1} <= stage.weights.keys()
                assert len(pairs) == 1 or max(lengths.source[pairs].sum(), lengths.target[pairs].sum()) <= BATCH_TOKENS
            done += len(plan)
            assert stage.until is None or done <= stage.until

    weights = st.lists(st.floats(0.01, 100) | st.sampled_from(WEIGHTS), min_size=2, max_size=3)
    good_stages = st.sets(st.sampled_from(["main", "a:2", "b"]), min_size=1).map(" ".join)
    ends = st.lists(st.integers(1, 400), max_size=2, unique=True).map(sorted)
    planned = st.tuples(st.lists(good_stages, min_size=3, max_size=3), ends).map(lambda each: _stages(*each))
    odd_words = st.sampled_from(["main", "c", "main:0", "b:x", "a:1e400", "until", "7", "-1", "9" * 30]) | texts()
    odd_stages = st.lists(st.lists(odd_words, max_size=4).map(" ".join), max_size=3)
    odd_entries = json_values() | st.dictionaries(texts() | st.sampled_from(["train", "tag"]), texts())
    sizes = st.lists(st.integers(1, 300), min_size=3, max_size=3)
    temperatures = st.sampled_from([0.0, 1.0, 5.0, 1e300])
    good = st.tuples(planned, st.none(), weights.filter(lambda found: len(found) == 3), temperatures, sizes)
    odd = st.tuples(odd_stages, st.none() | odd_entries, weights, temperatures | st.floats(), sizes)
    return Attempt(good | odd, check)


def _stages(corpora: list[str], ends: list[int]) -> list[str]:
    """Return stages with these ends, the last one without an end."""
    return [*(f"{names} until {end}" for names, end in zip(corpora, ends, strict=False)), corpora[-1]]
