"""What every architecture offers to training, search, estimates, exports and reports."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.attention import Plan
from nmt.model.kv_cache import KVCache
from nmt.model.packed import Packed
from nmt.model.word_vectors import Factors


class Stack(NamedTuple):
    """A stack of similar layers, described so that parameters, operations and memory can be estimated by formula."""

    part: str
    """encoder or decoder: the prefix of the names of its parameters."""
    layers: int
    reads_source: bool
    """Whether source tokens pass through it."""
    reads_target: bool
    """Whether target tokens pass through it."""
    cross_attention: bool
    """Whether its layers also attend to the encoder's output."""


class AttentionMaps(NamedTuple):
    """Attention weights (layers, heads, queries, keys) of one sentence pair, without padding."""

    encoder: Tensor
    """From source tokens to source tokens."""
    decoder: Tensor
    """From target tokens to target tokens."""
    cross: Tensor
    """From target tokens to source tokens."""


class TranslationModel(Protocol):
    """A translation model. Every architecture is an `nn.Module` with the methods below."""

    config: ModelConfig
    training: bool

    @staticmethod
    def stacks(config: ModelConfig) -> tuple[Stack, ...]:
        """Return the stacks of layers that a model with these settings has."""

    def __call__(self, source: Packed, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the last layer's output (T, d_model) for each target token, given those before it and the source.

        Attention is computed as the backend says, or `plan`, if there is one.
        """

    @property
    def projection(self) -> Tensor:
        """The matrix (V, d_model) before the softmax."""

    def factors(self, output: Tensor) -> Factors:
        """Return rows and a matrix whose products are the scores of all words, given the last layer's output (T, d)."""

    def build_position_tables(self, longest: int) -> None:
        """Compute the tables for sentences of at most `longest` tokens now, in the precision of training.

        A compiled forward pass would otherwise be compiled again when it meets a longer sentence.
        """

    def logits(self, output: Tensor) -> Tensor:
        """Return the scores (..., V) of all words, given the last layer's output (..., d_model)."""

    def start(self, source: Packed) -> KVCache:
        """Read the source and return a KV cache for `advance`."""

    def advance(self, tokens: Tensor, parents: Tensor, state: KVCache) -> Tensor:
        """Return the scores (R, V) of the tokens that follow `tokens` (R,).

        Row r continues row `parents[r]` of the previous call; in the first call, row r is sentence r.
        The rows of a sentence are adjacent, and every sentence still being decoded has the same number of rows.
        """

    def attention(self, source: Packed, target: Packed) -> list[AttentionMaps]:
        """Return the attention weights of each sentence pair."""

    # The methods of nn.Module that callers use:
    def parameters(self) -> Iterator[nn.Parameter]: ...  # noqa: D102
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...  # noqa: D102
    def modules(self) -> Iterator[nn.Module]: ...  # noqa: D102
    def named_modules(self) -> Iterator[tuple[str, nn.Module]]: ...  # noqa: D102
    def state_dict(self) -> dict[str, Any]: ...  # noqa: D102
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...  # noqa: D102
    def train(self, mode: bool = True) -> Self: ...  # noqa: D102
    def eval(self) -> Self: ...  # noqa: D102
    def double(self) -> Self: ...  # noqa: D102
    def to(self, device: torch.device) -> Self: ...  # noqa: D102
    def compile(self, *, dynamic: bool, mode: str | None = None) -> None: ...  # noqa: D102
