import pytest
import torch

from nmt.model.cpu.dropout import Dropout


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_dropout_zeroes_the_given_share_and_keeps_the_mean(probability: float) -> None:
    dropped = Dropout(probability)(torch.ones(1001, 999))
    share = (dropped == 0).double().mean()
    assert share == pytest.approx(probability, abs=0.002)
    assert dropped.mean() == pytest.approx(1, abs=0.005)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - probability)])


def test_neighbouring_coordinates_are_dropped_independently() -> None:
    kept = (Dropout(0.5)(torch.ones(400_000)) != 0).double() - 0.5
    for distance in (1, 2, 3, 4, 5, 8):
        assert abs((kept[:-distance] * kept[distance:]).mean()) < 0.002


def test_the_gradient_has_the_mask_of_the_forward_pass() -> None:
    stream = torch.randn(50, 7, requires_grad=True)
    dropped = Dropout(0.4)(stream)
    dropped.sum().backward()
    torch.testing.assert_close(stream.grad, dropped.detach() / stream.detach())


def test_the_same_seed_gives_the_same_mask() -> None:
    dropout, stream, drawn = Dropout(0.3), torch.ones(333), []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append(dropout(stream))
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], dropout(stream))


def test_nothing_is_dropped_when_not_training() -> None:
    stream = torch.randn(10, 3)
    assert Dropout(0.9).eval()(stream) is stream
    assert Dropout(0.0)(stream) is stream


def test_a_probability_below_the_smallest_step_is_no_error() -> None:
    dropped = Dropout(5e-6)(torch.ones(3, 5))  # of a size that the operations in C do not take
    assert ((dropped == 0) | (dropped - 1 < 1e-4)).all()
