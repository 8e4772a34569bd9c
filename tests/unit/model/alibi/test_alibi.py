"""A bias of the scores, which flash attention cannot add."""

from dataclasses import replace

import torch

from tests.unit.data import test_shapes
from tests.unit.model import test_attention_plan


def test_the_bias_needs_padded_attention() -> None:
    model = replace(test_attention_plan.SMALL, positions="alibi")
    message = "cannot add the bias of model.positions=alibi"
    test_attention_plan.test_impossible_attention_is_refused("flash", "cuda", torch.bfloat16, model, message)
    test_shapes.test_padded_attention_gets_no_more_sentences_and_no_longer_ones(test_shapes.GPU, model)
