"""Samples with the engine, in a small random model."""

import torch

from nmt.text.tokenizer import Tokenizer
from tests.unit.decoding.test_torch_engine import LINES, random_model, tokenizer, translator

__all__ = ["tokenizer"]


def test_samples_do_not_depend_on_the_number_of_threads(tokenizer: Tokenizer) -> None:
    model, threads = random_model(tokenizer), torch.get_num_threads()
    drawn = []
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            engine = translator([model], tokenizer, strategy="sample", nbest=3, batch_tokens=40)
            drawn.append(list(engine.translate(LINES * 3)))
    finally:
        torch.set_num_threads(threads)
    for one, other in zip(*drawn, strict=True):
        assert [each.text for each in one.candidates] == [each.text for each in other.candidates]
