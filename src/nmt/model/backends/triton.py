"""The operations of the model on GPUs with bf16, with kernels in Triton."""

from typing import cast

import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.model.attention import Attend, AttentionSpec
from nmt.model.backends.cuda import Cuda
from nmt.model.dropout import Dropout
from nmt.model.kernels import residual
from nmt.model.kernels.rows import rectifier_gradient, softmax_gradient_, sum_rows
from nmt.model.kernels.short_attention import MAX_HEAD_WIDTH, TILES, ShortAttend
from nmt.model.modules import KNOWN_NORMS


class Triton(Cuda):
    """Sums and statistics are in float32. The dropout of residual connections depends on a seed and a counter only."""

    def __init__(self, device: torch.device) -> None:
        """Compute on a GPU."""
        super().__init__(device)
        self.device = device

    def try_out(self) -> None:
        """Compile a kernel: Triton needs a C compiler and Python's headers for that, which many machines do not have.

        Raises:
            UserError: It fails.
        """
        dropout = Dropout(0.1).to(self.device)
        rows = torch.zeros(16, 16, device=self.device)
        try:
            self.residual(rows, rows, dropout).sum().item()
        except Exception as error:  # of any kind: drivers, compilers and Triton have many
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise UserError(
                f"Triton's kernels cannot be compiled for {torch.cuda.get_device_name(self.device)} ({reason[:200]}): "
                "install a C compiler and Python's headers (gcc, python3-dev), or set runtime.kernels=false"
            ) from error

    def attention(self, spec: AttentionSpec) -> Attend:
        """See `Eager.attention`: sentences that fit into a tile take less time than with flash attention."""
        short = spec.plain and spec.precision == torch.bfloat16 and self.flash[torch.bfloat16]
        if short and spec.head_width <= MAX_HEAD_WIDTH and spec.longest <= TILES[-1]:
            return ShortAttend(spec)
        return super().attention(spec)

    def residual(self, stream: Tensor, branch: Tensor, dropout: Dropout) -> Tensor:
        """See `Eager.residual`."""
        return residual.dropout_add(stream, branch, dropout)

    def norm(self, stream: Tensor, norm: nn.Module) -> Tensor:
        """See `Eager.norm`."""
        return residual.norm(stream, norm)

    def residual_norm(self, stream: Tensor, branch: Tensor, dropout: Dropout, norm: nn.Module) -> Tensor:
        """See `Eager.residual_norm`."""
        if type(norm) not in KNOWN_NORMS:
            return super().residual_norm(stream, branch, dropout, norm)
        return cast(Tensor, residual.residual_norm(stream, branch, dropout, norm, keep_sum=False))

    def residual_and_norm(
        self, stream: Tensor, branch: Tensor, dropout: Dropout, norm: nn.Module
    ) -> tuple[Tensor, Tensor]:
        """See `Eager.residual_and_norm`."""
        if type(norm) not in KNOWN_NORMS:
            return super().residual_and_norm(stream, branch, dropout, norm)
        return cast(tuple[Tensor, Tensor], residual.residual_norm(stream, branch, dropout, norm, keep_sum=True))

    def rotate(self, heads: Tensor, rotation: Tensor) -> Tensor:
        """See `Eager.rotate`."""
        return residual.rotate(heads, rotation)

    def rectifier_gradient(self, gradient: Tensor, rectified: Tensor) -> tuple[Tensor, Tensor]:
        """See `Fast.rectifier_gradient`."""
        return rectifier_gradient(gradient, rectified)

    def sum_rows(self, rows: Tensor) -> Tensor:
        """See `Fast.sum_rows`.

        On an H200, PyTorch's own takes 40 μs for 25,000 rows of 512 in bf16, the kernel 22 μs.
        """
        return sum_rows(rows)

    def softmax_gradient_(self, logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `Eager.softmax_gradient_`."""
        return softmax_gradient_(logits, labels, smoothing)
