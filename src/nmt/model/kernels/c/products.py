"""Products of rows with a matrix that is stored in the order in which the operation in C reads it."""

from ctypes import Structure, c_int64, c_void_p

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.kernels.c.library import library

PAIR_INPUTS = 32
"""In bf16, the number of inputs is filled up with zeros to a multiple of this."""
MORE_ROWS = 32
"""Rows that have room after those that are multiplied, because AMX may read them."""
BYTE_INPUTS = 4
"""In int8, the number of inputs is a multiple of this."""
MAX_INTEGER = 127


class Matrix(Structure):
    """A packed matrix, as the C code sees it."""

    _fields_ = (
        *((name, c_void_p) for name in ("panels", "bias", "pairs", "bytes", "scales", "totals")),
        ("inputs", c_int64),
        ("outputs", c_int64),
    )


class PackedMatrix:
    """A matrix (d_out, d_in) and a bias (d_out,) in float32; later changes of them do not affect the copy.

    In bf16, the matrix and the rows are rounded, and their products are summed in float32. In int8, the matrix is
    rounded to integers with one scale per output, and the rows with one scale per row.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, numbers: torch.dtype = torch.float32) -> None:
        self.outputs, self.inputs = weight.shape
        self.numbers = torch.float32 if numbers == torch.int8 and self.inputs % BYTE_INPUTS else numbers
        self.library = library(weight)
        columns = c_int64.in_dll(self.library, "panel_columns").value
        padding = -self.outputs % columns
        offsets = weight.new_zeros(self.outputs) if bias is None else bias.detach()
        pack = PACKINGS[self.numbers]
        self.parts = {"bias": F.pad(offsets, (0, padding))} | pack(F.pad(weight.detach(), (0, 0, 0, padding)), columns)
        addresses = {name: part.data_ptr() for name, part in self.parts.items()}
        self.structure = Matrix(**addresses, inputs=self.inputs, outputs=self.outputs)


def scratch_for(rows: int, inputs: int) -> Tensor:
    """Return the memory that products of at most this many rows and inputs need: two bytes per number are enough."""
    return torch.empty(rows + MORE_ROWS, 2 * (inputs + PAIR_INPUTS), dtype=torch.uint8)


def _panels(weight: Tensor, columns: int) -> dict[str, Tensor]:
    """Return a matrix (d_out, d_in) in float32 as `products.h` describes it."""
    return {"panels": weight.view(-1, columns, weight.shape[1]).transpose(1, 2).contiguous()}


def _pairs(weight: Tensor, columns: int) -> dict[str, Tensor]:
    """Return the same in bf16."""
    numbers = F.pad(weight, (0, -weight.shape[1] % PAIR_INPUTS)).bfloat16()
    return {"pairs": numbers.view(-1, columns, numbers.shape[1] // 2, 2).transpose(1, 2).contiguous()}


def _bytes(weight: Tensor, columns: int) -> dict[str, Tensor]:
    """Return the same in int8."""
    scales = weight.abs().amax(1) / MAX_INTEGER
    integers = (weight / scales.clamp(min=torch.finfo(torch.float32).tiny)[:, None]).round().to(torch.int8)
    groups = integers.view(-1, columns, weight.shape[1] // BYTE_INPUTS, BYTE_INPUTS)
    totals = integers.sum(1, dtype=torch.int32)
    return {"bytes": groups.transpose(1, 2).contiguous(), "scales": scales, "totals": totals}


PACKINGS = {torch.float32: _panels, torch.bfloat16: _pairs, torch.int8: _bytes}
"""How a matrix is stored, by the type of its numbers."""
