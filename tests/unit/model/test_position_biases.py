"""Position encodings that bias the scores of self-attention, in each way that attention is computed."""

import pytest
import torch
from torch import Tensor, nn

from nmt.model.attention import PaddedAttend, RecordingAttend
from nmt.model.packed import Packed

HEADS, WIDTH = 4, 6


class Slope(nn.Module):
    """A bias that depends on queries and distances, and has a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

    def forward(self, queries: Tensor, distances: Tensor) -> Tensor:
        return self.slope * queries.sum(-1, keepdim=True) * distances.unsqueeze(-3)


def heads(tokens: int, seed: int) -> list[Tensor]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(tokens, HEADS, WIDTH, generator=random, dtype=torch.float64).requires_grad_() for _ in range(3)]


def plainly(queries: Tensor, keys: Tensor, values: Tensor, slope: Tensor, causal: bool, prefix: int = 0) -> Tensor:
    """One sentence, pair by pair."""
    rows = []
    for i in range(len(queries)):
        seen = range(max(i + 1, prefix) if causal else len(queries))
        scores = torch.stack(
            [(queries[i] * keys[j]).sum(-1) / WIDTH**0.5 + slope * queries[i].sum(-1) * (j - i) for j in seen]
        )
        rows.append((scores.softmax(0)[..., None] * values[: len(seen)]).sum(0).flatten())
    return torch.stack(rows)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [[3, 1, 5], [4, 4]])
@pytest.mark.parametrize("recording", [False, True])
def test_attention_with_a_bias_and_its_gradients_equal_the_formula(
    causal: bool, lengths: list[int], recording: bool
) -> None:
    stream = Packed.from_sentences([[7] * length for length in lengths])
    made = PaddedAttend(stream, stream, causal=causal)
    if recording:
        made = RecordingAttend(stream, stream, causal=causal, weights=[])
    bias, ours, theirs = Slope(), heads(sum(lengths), 1), heads(sum(lengths), 1)
    found = made(ours[0], ours[1], ours[2], bias)
    slope = bias.slope.detach().clone().requires_grad_()
    sentences = zip(*(each.split(lengths) for each in theirs), strict=True)
    expected = torch.cat([plainly(q, k, v, slope, causal) for q, k, v in sentences])
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    pull = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    found.backward(pull)
    expected.backward(pull)
    for one, other in zip([*ours, bias.slope], [*theirs, slope], strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-9, atol=1e-9)


def test_the_first_tokens_of_causal_attention_see_each_other() -> None:
    lengths, prefixes = [5, 2, 4], [3, 1, 4]
    stream = Packed.from_sentences([[7] * length for length in lengths])
    attend, bias, ours = PaddedAttend(stream, stream, causal=True, prefix=torch.tensor(prefixes)), Slope(), heads(11, 1)
    sentences = zip(*(each.split(lengths) for each in ours), prefixes, strict=True)
    expected = torch.cat([plainly(q, k, v, bias.slope, True, prefix) for q, k, v, prefix in sentences])
    torch.testing.assert_close(attend(ours[0], ours[1], ours[2], bias), expected, rtol=1e-10, atol=1e-10)
