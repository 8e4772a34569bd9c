"""Products of rows with a matrix that is stored in the order in which the operation in C reads it."""

import ctypes
from ctypes import Structure, c_int64, c_void_p

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.kernels.c.library import library

STORE, RECTIFY = 0, 1
"""What happens to a product: it is stored, or its ReLU."""


class Matrix(Structure):
    """A packed matrix, as the C code sees it."""

    _fields_ = (("panels", c_void_p), ("bias", c_void_p), ("inputs", c_int64), ("outputs", c_int64))


class PackedMatrix:
    """A matrix (d_out, d_in) and a bias (d_out,) in float32; later changes of them do not affect the copy."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.outputs, self.inputs = weight.shape
        self.library = library(weight)
        columns = c_int64.in_dll(self.library, "panel_columns").value
        missing = -self.outputs % columns
        panels = F.pad(weight.detach(), (0, 0, 0, missing)).view(-1, columns, self.inputs)
        self.panels = panels.transpose(1, 2).contiguous()
        self.bias = weight.new_zeros(self.outputs + missing)
        if bias is not None:
            self.bias[: self.outputs] = bias.detach()
        self.structure = Matrix(self.panels.data_ptr(), self.bias.data_ptr(), self.inputs, self.outputs)

    def product(self, rows: Tensor, *, rectify: bool = False) -> Tensor:
        """Return x W^T + b, or the ReLU of it, for x (..., d_in) in float32."""
        rows = rows.contiguous()
        result = torch.empty(*rows.shape[:-1], self.outputs)
        count = rows.numel() // self.inputs
        then = RECTIFY if rectify else STORE
        self.library.multiply(ctypes.byref(self.structure), rows.data_ptr(), count, result.data_ptr(), then)
        return result
