"""The model's operations in plain PyTorch, on any device: the truth that the other backends are compared with."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.model.activations import Activation
from nmt.model.attention import Attend, AttentionSpec, PaddedAttend, exact_type
from nmt.model.dropout import Dropout, dropout_mask

LOGITS_PER_CHUNK = 8 * 1024 * 1024
"""The largest number of logits of the loss in memory at a time on a CPU."""
LOGITS_PER_GPU_CHUNK = 256 * 1024 * 1024
"""The same on a GPU, 512 MiB in bf16: each further chunk adds launches and reads the gradient's sum again."""
LOGITS_IN_CACHE = 256 * 1024
"""The number of logits that a CPU replaces by their gradient at a time, so that they stay in its cache."""


class Eager:
    """Computes what the layers ask for.

    Streams are in the precision of matrix products. Parameters are in float32, unless devices divide them.
    """

    name = "eager"

    def attention(self, spec: AttentionSpec) -> Attend:
        """Choose how to attend in a forward pass: this method is a `Plan`."""
        return PaddedAttend(spec)

    def linear(self, rows: Tensor, layer: nn.Linear) -> Tensor:
        """Return x W^T + b: (T, d_in) to (T, d_out)."""
        return F.linear(rows, layer.weight.to(rows.dtype), layer.bias.to(rows.dtype))

    def split(self, product: Tensor, widths: list[int]) -> tuple[Tensor, ...]:
        """Return parts (T, width) of a product (T, sum of widths)."""
        return tuple(product.split(widths, -1))

    def feed_forward(
        self, rows: Tensor, inner: nn.Module, activation: Activation, dropout: Dropout | None, outer: nn.Module
    ) -> Tensor:
        """Return max(0, x W1 + b1) W2 + b2, or the same with another activation, which may be gated."""
        hidden = inner(rows)
        if activation.gated:
            gate, value = hidden.chunk(2, dim=-1)
            hidden = activation.function(gate) * value
        else:
            hidden = activation.function(hidden)
        projected: Tensor = outer(hidden if dropout is None else self.dropout(hidden, dropout))
        return projected

    def dropout(self, stream: Tensor, dropout: Dropout) -> Tensor:
        """Zero some coordinates of a stream (..., d), and scale up the others."""
        rate = dropout.rate
        if not rate:
            return stream
        if stream.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(stream, rate)
        return (stream * dropout_mask(stream, rate)).mul_(1 / (1 - rate))

    def residual(self, stream: Tensor, branch: Tensor, dropout: Dropout) -> Tensor:
        """Return x + Dropout(branch), both (..., d)."""
        return stream + self.dropout(branch, dropout)

    def norm(self, stream: Tensor, norm: nn.Module) -> Tensor:
        """Normalise a stream (..., d), whose statistics are in float32 or more."""
        assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
        # CPUs have an operation for streams in bf16 with gains in float32
        mixed = isinstance(norm, nn.LayerNorm) and stream.device.type == "cpu"
        exact = stream if mixed else stream.to(norm.weight.dtype)
        if isinstance(norm, nn.LayerNorm):
            normed = F.layer_norm(exact, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
        else:
            normed = F.rms_norm(exact, norm.normalized_shape, norm.weight, norm.eps)
        return normed.to(stream.dtype)

    def residual_norm(self, stream: Tensor, branch: Tensor, dropout: Dropout, norm: nn.Module) -> Tensor:
        """Return Norm(x + Dropout(branch))."""
        normed: Tensor = norm(self.residual(stream, branch, dropout))
        return normed

    def residual_and_norm(
        self, stream: Tensor, branch: Tensor, dropout: Dropout, norm: nn.Module
    ) -> tuple[Tensor, Tensor]:
        """Return x + Dropout(branch), and the norm of that."""
        added = self.residual(stream, branch, dropout)
        return added, norm(added)

    def rotate(self, heads: Tensor, rotation: Tensor) -> Tensor:
        """Rotate pairs of coordinates of heads (T, h, d_k), given the sinusoids (T, d_k) of the tokens' positions.

        This is computed in float32 or more, and rounded once.
        """
        exact = exact_type(heads)
        sine, cosine = rotation[:, None, 0::2].to(exact), rotation[:, None, 1::2].to(exact)
        even, odd = heads[..., 0::2].to(exact), heads[..., 1::2].to(exact)
        turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
        return turned.flatten(-2).to(heads.dtype)

    # What losses are made of: they compute their own gradients, because they hold only some rows of logits at a time

    def multiply(self, left: Tensor, right: Tensor) -> Tensor:
        """Return left @ right, without a gradient."""
        return left @ right

    def exact_product(self, left: Tensor, right: Tensor, exact: torch.dtype) -> Tensor:
        """Return left @ right: in the exact type where a device adds up in it, else in that of the factors."""
        return self.multiply(left, right)

    def softmax_gradient_(self, logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """Replace logits (T, V) by softmax(logits), minus 1 - smoothing at each row's label (T,).

        Return the log-sum-exp of each row and the label's logit, both (T,) in float32 or more.
        """
        exact = exact_type(logits)
        label_logit = logits.gather(-1, labels[:, None])[:, 0].to(exact, copy=True)
        rows = max(1, LOGITS_IN_CACHE // logits.shape[-1]) if logits.device.type == "cpu" else len(logits)
        normalisers = []
        for chunk, chunk_labels in zip(logits.split(rows), labels[:, None].split(rows), strict=True):
            probabilities = torch.softmax(chunk, dim=-1, dtype=exact)
            # log-sum-exp through the largest logit, whose probability cannot underflow
            normalisers.append(chunk.amax(-1).to(exact) - probabilities.amax(-1).log_())
            probabilities.scatter_add_(-1, chunk_labels, probabilities.new_full(chunk_labels.shape, smoothing - 1))
            chunk.copy_(probabilities)
        return torch.cat(normalisers), label_logit
