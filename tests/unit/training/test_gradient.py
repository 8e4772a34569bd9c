"""How many micro-batches a process trains in parallel."""

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.training import TrainingConfig
from nmt.training.gradient import MIN_MICRO_BATCH_TOKENS, concurrency_of

CPU = Machine(torch.device("cpu"), torch.float32)


def test_cpu_trains_as_many_as_threads_and_batch_allow() -> None:
    torch.set_num_threads(4)
    assert concurrency_of(TrainingConfig(batch_tokens=4 * MIN_MICRO_BATCH_TOKENS), CPU, 0) == 4
    assert concurrency_of(TrainingConfig(batch_tokens=2 * MIN_MICRO_BATCH_TOKENS), CPU, 0) == 2
    limited = TrainingConfig(batch_tokens=4 * MIN_MICRO_BATCH_TOKENS, device_tokens=2 * MIN_MICRO_BATCH_TOKENS)
    assert concurrency_of(limited, CPU, 0) == 2


@pytest.mark.parametrize("given", [1, 2, 3])
def test_given_number_wins_on_a_cpu(given: int) -> None:
    torch.set_num_threads(4)
    assert concurrency_of(TrainingConfig(), CPU, given) == given


@pytest.mark.parametrize("given", [0, 4])
def test_gpu_trains_one_at_a_time(given: int) -> None:
    assert concurrency_of(TrainingConfig(), Machine(torch.device("cuda"), torch.bfloat16), given) == 1
