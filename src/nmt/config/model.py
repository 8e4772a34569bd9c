"""The settings of the Transformer."""

from dataclasses import dataclass
from typing import Annotated

from nmt.config.checks import Count, Group, Positive, Share, one_of
from nmt.errors import ConfigError

DECODER_ONLY = "decoder_only"
"""The value of `model.architecture`."""
SEEN_IN_WEIGHTS = (
    *("layers", "encoder_layers", "decoder_layers", "d_model", "d_ff"),
    *("max_positions", "tie_embeddings", "output_bias"),
)
"""Settings whose difference shows in the names or shapes of weights."""
DROPS = ("dropout", "attention_dropout", "activation_dropout")
"""Settings that are the probability with which training leaves out parts of the model."""
ONLY_IN_TRAINING = ("initialization", *DROPS)
"""Settings that change nothing that a trained model computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Group):
    """The model, in the letters of the paper (section 3 and Table 3)."""

    architecture: str = "transformer"
    """Architecture."""
    layers: Positive = 6
    """N: number of encoder layers, and of decoder layers."""
    encoder_layers: Count = 0
    """Number of encoder layers; 0 for `layers`."""
    decoder_layers: Count = 0
    """Number of decoder layers; 0 for `layers`."""
    d_model: Positive = 512
    """Width of the residual stream."""
    d_ff: Positive = 2048
    """Inner width of the feed-forward layers."""
    heads: Positive = 8
    """h: attention heads."""
    d_k: Count = 0
    """Width of queries and keys per head; 0 is the paper's d_model / h."""
    d_v: Count = 0
    """Width of values per head; 0 is the paper's d_model / h."""
    kv_heads: Count = 0
    """Key and value heads, each shared by several query heads (grouped-query attention); 0 is one per query head."""
    dropout: Share = 0.1
    """P_drop: dropout on the output of each sub-layer and on the sums of embeddings and positions."""
    attention_dropout: Share = 0.0
    """Dropout on the attention weights. On a GPU it needs padded attention, which is slower than flash attention."""
    activation_dropout: Share = 0.0
    """Dropout on the inner layer of the feed-forward layers, after the activation."""
    norm: str = "layer"
    """Normalisation."""
    norm_placement: Annotated[str, one_of("post", "pre")] = "post"
    """post: the paper's LayerNorm(x + Sublayer(x)); pre: x + Sublayer(LayerNorm(x))."""
    activation: str = "relu"
    """Activation inside the feed-forward layers."""
    positions: str = "sinusoidal"
    """Position encoding."""
    max_positions: Positive = 1024
    """Longest sentence, in word pieces, for learned positions."""
    initialization: Annotated[str, one_of("glorot", "small")] = "glorot"
    """Initial weights: glorot (the authors'), or small (normal, 0.02), which trains faster with small batches."""
    tie_embeddings: bool = True
    """Share one matrix between the source and target embeddings and the projection before the softmax."""
    output_bias: bool = False
    """Add a learned number per word to the scores before the softmax, as Marian's models do."""

    def _check(self) -> None:
        if self.d_model % self.heads and not (self.d_k and self.d_v):
            raise ConfigError(
                f"model.heads={self.heads} does not divide model.d_model={self.d_model}: "
                "choose a number that does, or set model.d_k and model.d_v"
            )
        if self.heads % self.key_value_heads:
            raise ConfigError(f"model.kv_heads={self.kv_heads} does not divide model.heads={self.heads}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ConfigError(f"model.d_model={self.d_model} must be even for sinusoidal positions")
        if self.positions == "rotary" and self.key_size % 2:
            raise ConfigError(f"model.d_k={self.key_size} must be even for rotary positions")

    @property
    def encoder_depth(self) -> int:
        """Number of encoder layers."""
        return self.encoder_layers or self.layers

    @property
    def decoder_depth(self) -> int:
        """Number of decoder layers."""
        return self.decoder_layers or self.layers

    @property
    def key_size(self) -> int:
        """d_k, with the paper's rule applied if it is 0."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_size(self) -> int:
        """d_v, with the paper's rule applied if it is 0."""
        return self.d_v or self.d_model // self.heads

    @property
    def key_value_heads(self) -> int:
        """Number of key and value heads."""
        return self.kv_heads or self.heads

    def meaning(self, name: str) -> object:
        """Return what the value of a setting stands for: the rule of the paper for 0, None if it has no effect."""
        if name == "max_positions" and self.positions != "learned":
            return None
        meanings: dict[str, object] = {
            "layers": (self.encoder_depth, self.decoder_depth),
            "encoder_layers": self.encoder_depth,
            "decoder_layers": self.decoder_depth,
            "d_k": self.key_size,
            "d_v": self.value_size,
            "kv_heads": self.key_value_heads,
        }
        return meanings[name] if name in meanings else getattr(self, name)
