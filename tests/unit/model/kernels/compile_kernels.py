"""Compile all Triton kernels for a GPU that need not be there: `python compile_kernels.py BACKEND ARCHITECTURE`.

Triton's interpreter does not notice what only the compiler refuses, or how much memory a program needs.
"""

import sys
from typing import Any
from unittest.mock import Mock

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from nmt.model.attention import AttentionSpec
from nmt.model.dropout import Dropout
from nmt.model.kernels import residual, rows
from nmt.model.kernels.short_attention import MAX_HEAD_WIDTH, TILES, ShortAttend
from nmt.model.packed import Packed

SHARED_MEMORY = {80: 163, 86: 99, 89: 99, 90: 227, 100: 227, "gfx90a": 64, "gfx942": 64}
"""The KiB of shared memory that a program can have, by architecture."""


def launch_all(dtype: torch.dtype) -> None:
    """Launch each kernel as training does."""
    stream = torch.zeros(64, 512, dtype=dtype, requires_grad=True)
    for norm in (torch.nn.LayerNorm(512), torch.nn.RMSNorm(512)):
        residual.norm(stream, norm).sum().backward()
        for probability in (0.0, 0.1):
            dropout = Dropout(probability)
            for keep_sum in (False, True):
                found = residual.residual_norm(stream, stream, dropout, norm, keep_sum=keep_sum)
                (found[0].sum() + found[-1].sum()).backward()
            residual.dropout_add(stream, stream, dropout).sum().backward()
    rows.softmax_gradient_(torch.zeros(2, 37000, dtype=dtype), torch.tensor([0, 1]), 0.1)
    rows.rectifier_gradient(stream.detach(), stream.detach())
    rows.sum_rows(stream.detach())
    heads = torch.zeros(64, 3, 8, MAX_HEAD_WIDTH, dtype=dtype, requires_grad=True)
    residual.rotate(heads[:, 0], torch.zeros(64, MAX_HEAD_WIDTH, dtype=dtype)).sum().backward()
    if dtype == torch.bfloat16:  # the only precision with short attention
        for tile in TILES:
            sentences = Packed.from_lengths(torch.zeros(tile, dtype=torch.int64), torch.tensor([tile]))
            spec = AttentionSpec(sentences, sentences, True, MAX_HEAD_WIDTH, dtype)
            queries, keys, values = heads.unbind(1)
            ShortAttend(spec)(queries, keys, values).sum().backward()


def main(backend: str, architecture: str) -> int:
    """Print the shared memory of each kernel; return 1 if one needs more than there is."""
    name: int | str = int(architecture) if backend == "cuda" else architecture
    target = GPUTarget(backend, name, 32 if backend == "cuda" else 64)
    answers = {"get_current_target": target, "get_current_device": 0, "get_current_stream": 0}
    triton.runtime.driver.set_active(Mock(**{f"{name}.return_value": answer for name, answer in answers.items()}))
    compile_and_launch = JITFunction.run
    too_large = []

    def only_compile(function: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> None:
        kernel = compile_and_launch(function, *arguments, grid=grid, warmup=True, **options)
        needed = f"{kernel.metadata.name} {options} needs {kernel.metadata.shared / 1024:.0f} KiB of shared memory"
        if kernel.metadata.shared > SHARED_MEMORY[name] * 1024:
            too_large.append(needed)

    JITFunction.run = only_compile
    launch_all(torch.bfloat16)
    launch_all(torch.float32)
    print("\n".join(too_large) or "all kernels compiled")
    return len(too_large) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
