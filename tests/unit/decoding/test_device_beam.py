"""The search whose state stays on a device finds what the other one does; here the device is the CPU."""

from functools import partial

import pytest
import torch
from torch import Tensor

from nmt.config.registry import CHOICES
from nmt.decoding.beam import most_probable
from nmt.decoding.device_beam import STEPS_PER_READ, search_on_device
from nmt.model.packed import Packed
from nmt.text.special import EOS
from tests.unit.decoding.toys import Toy, ToyScorer, found, search_with
from tests.unit.small_models import LINES, make_model, make_tokenizer

CPU = torch.device("cpu")


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


@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
def test_a_model_follows_the_sentences_that_are_left(architecture: str) -> None:
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, architecture=architecture)
    source = Packed.from_sentences([[*each, EOS] for each in tokenizer.encode_source(LINES)])
    limits = [5, 30, 9, 40, 17]
    with torch.no_grad():
        expected = search_with(partial(model.advance, state=model.start(source)), limits, beam=3, alpha=0.6, nbest=3)
        state = model.start(source)
        results = search_on_device(
            lambda tokens, parents: model.advance(tokens, parents.as_subclass(OnDevice), state),
            partial(most_probable, beam=3), state.keep, limits, CPU, beam=3, alpha=0.6, nbest=3,
        )  # fmt: skip
    for result, each in zip(results, expected, strict=True):
        assert [one.tokens for one in result] == [one.tokens for one in each]
        assert [one.score for one in result] == pytest.approx([one.score for one in each], rel=1e-4)
