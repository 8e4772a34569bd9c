"""The search whose state stays on a device finds what the other one does; here the device is the CPU."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from nmt.config.registry import CHOICES
from nmt.decoding.beam import most_probable
from nmt.decoding.device_beam import STEPS_PER_READ, search_on_device
from nmt.decoding.recorded_steps import RecordedScorer
from nmt.errors import UserError
from nmt.model.kv_cache import KVCache
from nmt.model.packed import Packed
from nmt.text.special import EOS
from tests.unit.decoding.toys import Toy, ToyScorer, found, search_with
from tests.unit.small_models import LINES, make_model, make_tokenizer

CPU = torch.device("cpu")
VARIANTS = ({"positions": "rotary", "norm_placement": "pre"}, {"positions": "relative"}, {"positions": "alibi"})


class OnDevice(Tensor):
    """Parents that the host cannot read."""

    device = property(lambda _: torch.device("cuda"))
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


@pytest.mark.parametrize(("beam", "nbest"), [(1, 1), (2, 1), (3, 3), (5, 2)])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_the_same_hypotheses_are_found_and_finished_sentences_leave(beam: int, nbest: int, alpha: float) -> None:
    limits, kept = [1, 3, 9, 6, 12, 2, 30, 18], list[int]()
    toys = [Toy(seed) for seed in range(len(limits))]
    expected = search_with(ToyScorer(toys), limits, beam=beam, alpha=alpha, nbest=nbest)
    scorer, choose = ToyScorer(toys), partial(most_probable, beam=beam)
    options = {"beam": beam, "alpha": alpha, "nbest": nbest}
    results = search_on_device(scorer, choose, lambda left: kept.append(len(left)), limits, CPU, **options)  # type: ignore[arg-type]
    for result, each in zip(results, expected, strict=True):
        assert found(result) == [(tuple(one.tokens), one.score) for one in each]
    assert scorer.calls[STEPS_PER_READ:][:1] == [each * beam for each in kept[:1]]


class RepeatingRecorder:
    """Takes the place of what needs a GPU: a replay runs the step again, as the host saw it while it was recorded."""

    def __init__(self, cache: KVCache, change: float = 0.0) -> None:
        self.cache, self.change, self.verified, self.replays = cache, change, False, 0

    def record(self, work: Callable[[], None]) -> Any:
        cache, length = self.cache, self.cache.length
        memory = [each.data_ptr() for each in (cache.past, cache.taken, *cache.cross)]

        def replay() -> None:
            self.replays += 1
            now, cache.length = cache.length, length
            work()
            cache.past += self.change
            cache.length = now
            assert memory == [each.data_ptr() for each in (cache.past, cache.taken, *cache.cross)]

        cache.length += 1  # what `work` does on the host
        return SimpleNamespace(replay=replay)


@pytest.mark.parametrize("recorded", [False, True], ids=["as it is", "recorded"])
@pytest.mark.parametrize(
    "settings", [*({"architecture": each} for each in CHOICES["model.architecture"]), *VARIANTS], ids=str
)
def test_a_model_follows_the_sentences_that_are_left(settings: dict[str, Any], recorded: bool) -> None:
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, **settings)
    source = Packed.from_sentences([[*each, EOS] for each in tokenizer.encode_source(LINES)])
    limits = [5, 30, 9, 40, 17]
    with torch.no_grad():
        expected = search_with(partial(model.advance, state=model.start(source)), limits, beam=3, alpha=0.6, nbest=3)
        state = model.start(source)
        state.static = recorded

        def scorer(tokens: Tensor, parents: Tensor) -> Tensor:
            return model.advance(tokens, parents.as_subclass(OnDevice), state)

        recorder = RepeatingRecorder(state)
        results = search_on_device(
            RecordedScorer(scorer, state, cast(Any, recorder)) if recorded else scorer,
            partial(most_probable, beam=3), state.keep, limits, CPU, beam=3, alpha=0.6, nbest=3,
        )  # fmt: skip
    assert not recorded or recorder.replays > 20
    for result, each in zip(results, expected, strict=True):
        assert [one.tokens for one in result] == [one.tokens for one in each]
        assert [one.score for one in result] == pytest.approx([one.score for one in each], rel=1e-4)


def test_a_graph_that_computes_something_else_is_refused_and_the_setting_is_named() -> None:
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    state = model.start(Packed.from_sentences([[*tokenizer.encode_source(LINES[:1])[0], EOS]]))
    state.static = True
    recorder = cast(Any, RepeatingRecorder(state))
    recorder.record = lambda work: SimpleNamespace(replay=lambda: None)
    scorer, row = (
        RecordedScorer(partial(model.advance, state=state), state, recorder),
        torch.zeros(1, dtype=torch.int64),
    )
    with torch.no_grad():
        scorer(row, row)
        scorer._scores = torch.ones(1, len(model.projection))
        with pytest.raises(UserError, match=r"set runtime\.cuda_graphs=false"):
            scorer(row, row)
