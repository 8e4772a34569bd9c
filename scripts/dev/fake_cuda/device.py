"""Provide a CUDA device without hardware: tensors have shapes, types and devices, but no values."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.runtime.jit import JITFunction

from fake_cuda.counting import attend, launch
from nmt.model.backends import cuda, triton

HOPPER = (9, 0)
"""The compute capability of an H100."""
NOTHING = ["_lazy_init", "set_device", "synchronize", "empty_cache"]
NOTHING += ["get_rng_state", "set_rng_state", "manual_seed", "manual_seed_all"]
"""Functions of torch.cuda that do nothing here."""


@contextmanager
def fake_cuda() -> Iterator[FakeTensorMode]:
    """Make torch report one CUDA device, and let all tensors be fake, in this block (see `guard.register_device`)."""
    properties = SimpleNamespace(
        name="fake", total_memory=int(80e9), major=HOPPER[0], minor=HOPPER[1], multi_processor_count=132
    )
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": "fake",
        "get_device_capability": HOPPER,
        "get_device_properties": properties,
        **dict.fromkeys(NOTHING),
    }
    fakes = {name: mock.Mock(return_value=answer) for name, answer in answers.items()}
    # autograd runs the backward pass of CUDA tensors in a thread, in which modes of this thread are not active
    with (
        mock.patch.multiple(torch.cuda, **fakes),
        mock.patch.object(cuda, "has_triton", return_value=True),
        mock.patch.object(triton.Triton, "try_out"),  # nothing can be compiled for this device
        mock.patch.object(JITFunction, "run", launch),
        mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", attend),
        torch.autograd.set_multithreading_enabled(False),
        FakeTensorMode(allow_non_fake_inputs=True) as mode,
    ):
        yield mode
