"""The operations in C, used by any number of threads."""

import os
from collections.abc import Iterator, Mapping
from ctypes import CDLL
from typing import cast

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.model.backends.chosen import choose
from nmt.model.kernels.c import library


@pytest.fixture(scope="package")
def eager_libraries() -> Mapping[torch.dtype, CDLL] | None:
    """Compile operations that divide even the smallest inputs between threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", f"{os.environ.get('CC') or 'cc'} -DFEW=1")
        patch.setattr(library, "_library", library._library.__wrapped__)
        found = {dtype: library._library(dtype) for dtype in library.DEFINITIONS}
        return None if None in found.values() else cast(Mapping[torch.dtype, CDLL], found)


@pytest.fixture(params=[1, 6], ids="{} threads".format)
def in_c(
    request: pytest.FixtureRequest,
    eager_libraries: Mapping[torch.dtype, CDLL] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Use the operations in C, with the work of each divided between some threads."""
    if eager_libraries is None:
        pytest.skip("needs a C compiler")
    threads = torch.get_num_threads()
    torch.set_num_threads(request.param)
    monkeypatch.setattr(library, "_library", eager_libraries.__getitem__)
    choose(Machine(torch.device("cpu"), torch.bfloat16), kernels=True)
    yield
    torch.set_num_threads(threads)
