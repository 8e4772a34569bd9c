"""Every setting: its name, type, default and meaning, and whether it may change when a run is resumed.

The defaults are the base model of "Attention Is All You Need" on WMT14 English-German; the files in
`conf/` state only differences from them. This module uses the standard library only, so any module may import it.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from nmt.config.choices import CHOICES
from nmt.errors import ConfigError, nearest

ADJUSTABLE = {"adjustable": True}
"""Metadata of a setting, or a group, that may change when a run is resumed: at each step the weights are the same, but
for rounding."""
SCHEDULES = ("inverse_sqrt", "cosine", "constant", "wsd")
"""The functions that are registered in nmt.training.schedule."""
OPTIMIZERS = ("adam",)
"""The functions that are registered in nmt.training.optimizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """The source of the parallel text, and which pairs are kept."""

    corpus: str = "wmt14_en_de"
    """Name of the prepared data, which is stored in `<paths.data>/<corpus>/`."""
    source: str = "hub"
    """Kind of source: hub (Hugging Face), files (your own) or demo (the embedded grammar)."""
    source_lang: str = "en"
    """Language to translate from."""
    target_lang: str = "de"
    """Language to translate into."""
    train: list[str] = field(default_factory=lambda: ["train"])
    """Training text: a Hub split, or files (the source language first, or one file with both)."""
    valid: list[str] = field(default_factory=lambda: ["validation"])
    """Validation text, like `train`."""
    test: list[str] = field(default_factory=lambda: ["test"])
    """Test text, like `train`."""
    columns: list[str] = field(default_factory=list)
    """Columns of source and target in tables that do not name them after the languages."""
    hold_out: float = 0.0
    """Share of the training pairs held out as `valid`, and again as `test`, if these are empty."""
    hub_dataset: str = "wmt/wmt14"
    """Data set on the Hub, or a local folder in the Hub's layout."""
    hub_config: str = "de-en"
    """Configuration of the Hub data set, such as a language pair."""
    hub_revision: str = "b199e406369ec1b7634206d3ded5ba45de2fe696"
    """Revision of the Hub data set: a full commit, so the text never changes."""
    check_counts: bool = True
    """Refuse a Hub data set with another number of pairs than known."""
    drop_copies: bool = False
    """Drop training pairs with identical source and target."""
    max_words: int = 250
    """Drop training pairs with more words than this in the source or the target; 0 for no limit."""
    max_ratio: float = 0.0
    """Drop training pairs if one side is longer than the other by more than this factor; 0 for no limit."""
    deduplicate: bool = False
    """Drop repeated training pairs."""
    max_pieces: int = 256
    """Drop training pairs with more word pieces than this in the source or the target."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("data.source", self.source, ("hub", "files", "demo"))
        _plain_name("data.corpus", self.corpus)
        if not 0 <= self.hold_out < 0.5:
            raise ConfigError(
                f"data.hold_out={self.hold_out} must be at least 0 and below 0.5: valid and test take this share each"
            )
        if self.columns and (len(self.columns) != 2 or len({*self.columns}) != 2):
            raise ConfigError(f"data.columns=[{','.join(self.columns)}] must name two columns, the source first")
        _at_least("data.max_words", self.max_words, 0)
        _at_least("data.max_pieces", self.max_pieces, 2)
        if not (self.max_ratio == 0 or self.max_ratio >= 1):
            raise ConfigError(
                f"data.max_ratio={self.max_ratio} would drop every pair: use 1 or more, or 0 for no limit"
            )
        _language("data.source_lang", self.source_lang)
        _language("data.target_lang", self.target_lang)
        if self.source_lang == self.target_lang:
            raise ConfigError(f"data.source_lang and data.target_lang are both {self.source_lang}: name two languages")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """The vocabulary, and how text is split into word pieces."""

    model_type: str = "bpe"
    """SentencePiece model: bpe or unigram."""
    vocab_size: int = 37_000
    """Number of word pieces, including the four special ones."""
    joint: bool = True
    """Share one vocabulary between both languages; false trains one per language."""
    normalization: str = "identity"
    """Text normalisation, which is irreversible: identity, nfkc, nmt_nfkc, nfkc_cf or nmt_nfkc_cf."""
    character_coverage: float = 1.0
    """Share of the characters that the vocabulary covers; the rest becomes the unknown piece."""
    training_sentences: int = 5_000_000
    """Train on a random sample of at most this many sentences; 0 uses all of them."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("tokenizer.model_type", self.model_type, ("bpe", "unigram"))
        _choice(
            "tokenizer.normalization", self.normalization, ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
        )
        _between("tokenizer.vocab_size", self.vocab_size, 8, 10_000_000)
        _at_least("tokenizer.training_sentences", self.training_sentences, 0)
        if not 0.9 <= self.character_coverage <= 1:
            raise ConfigError(f"tokenizer.character_coverage={self.character_coverage} must lie between 0.9 and 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The model, in the letters of the paper (section 3 and Table 3)."""

    architecture: str = "transformer"
    """Architecture."""
    prefix_attention: bool = False
    """Decoder-only: let source tokens see later source tokens, too."""
    layers: int = 6
    """N: number of encoder layers, and of decoder layers."""
    encoder_layers: int = 0
    """Number of encoder layers; 0 for `layers`."""
    decoder_layers: int = 0
    """Number of decoder layers; 0 for `layers`."""
    d_model: int = 512
    """Width of the residual stream."""
    d_ff: int = 2048
    """Inner width of the feed-forward layers."""
    heads: int = 8
    """h: attention heads."""
    d_k: int = 0
    """Width of queries and keys per head; 0 is the paper's d_model / h."""
    d_v: int = 0
    """Width of values per head; 0 is the paper's d_model / h."""
    kv_heads: int = 0
    """Key and value heads, each shared by several query heads (grouped-query attention); 0 is one per query head."""
    dropout: float = 0.1
    """P_drop: dropout on the output of each sub-layer and on the sums of embeddings and positions."""
    norm: str = "layer"
    """Normalisation."""
    norm_placement: str = "post"
    """post: the paper's LayerNorm(x + Sublayer(x)); pre: x + Sublayer(LayerNorm(x))."""
    activation: str = "relu"
    """Activation inside the feed-forward layers."""
    positions: str = "sinusoidal"
    """Position encoding."""
    max_positions: int = 1024
    """Longest sentence, in word pieces, for learned positions."""
    max_relative_distance: int = 16
    """Distance, in word pieces, beyond which relative positions are all alike."""
    initialization: str = "glorot"
    """Initial weights: glorot (the authors'), or small (normal, 0.02), which trains faster with small batches."""
    tie_embeddings: bool = True
    """Share one matrix between the source and target embeddings and the projection before the softmax."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("layers", "d_model", "d_ff", "heads", "max_positions", "max_relative_distance"):
            _at_least(f"model.{name}", getattr(self, name), 1)
        for name in ("encoder_layers", "decoder_layers", "d_k", "d_v", "kv_heads"):
            _at_least(f"model.{name}", getattr(self, name), 0)
        _fraction("model.dropout", self.dropout)
        _choice("model.norm_placement", self.norm_placement, ("post", "pre"))
        _choice("model.initialization", self.initialization, ("glorot", "small"))
        for name in ("architecture", "norm", "activation", "positions"):
            _choice(f"model.{name}", getattr(self, name), CHOICES[f"model.{name}"])
        self._check_architecture()
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

    def _check_architecture(self) -> None:
        if self.prefix_attention and self.architecture != "decoder_only":
            raise ConfigError("model.prefix_attention=true is for model.architecture=decoder_only")
        if self.architecture == "decoder_only" and self.encoder_layers:
            raise ConfigError(
                f"model.encoder_layers={self.encoder_layers}, but model.architecture=decoder_only has no encoder: "
                "set model.decoder_layers or model.layers"
            )
        if self.architecture == "decoder_only" and self.positions == "learned":
            raise ConfigError(
                "model.positions=learned counts the positions of each side, but model.architecture=decoder_only has "
                "one stream: choose other positions, such as rotary"
            )

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """Section 5 of the paper: batches, schedule, optimizer, regularisation; and when to validate and save."""

    steps: int = field(default=100_000, metadata=ADJUSTABLE)
    """Number of updates of the weights."""
    batch_tokens: int = 25_000
    """Most source tokens, and most target tokens, in a global batch (over all devices)."""
    device_tokens: int = field(default=0, metadata=ADJUSTABLE)
    """Most source tokens, and most target tokens, in a micro-batch on one device; larger shares accumulate
    gradients. 0 for no limit."""
    schedule: str = "inverse_sqrt"
    """Learning rate after the warmup: inverse_sqrt (the paper's), cosine (to zero), constant, or wsd (constant, then a
    linear decay to zero over the last decay_steps)."""
    warmup_steps: int = 4000
    """Steps over which the rate rises linearly."""
    decay_steps: int = 0
    """Steps at the end over which schedule=wsd lowers the rate to zero; 0: a fifth of all steps."""
    learning_rate: float = 0.0
    """Peak learning rate; 0 for the paper's (d_model * warmup_steps)^-0.5."""
    label_smoothing: float = 0.1
    """epsilon_ls: probability spread evenly over the vocabulary."""
    optimizer: str = "adam"
    """The optimizer: adam."""
    adam_beta1: float = 0.9
    """Adam's decay rate of the mean gradient."""
    adam_beta2: float = 0.98
    """Adam's decay rate of the mean squared gradient."""
    adam_eps: float = 1e-9
    """Adam's epsilon."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW)."""
    clip_norm: float = 0.0
    """Largest norm of the gradient, which is scaled down to it; 0 for no clipping, like the paper."""
    reduce_precision: str = field(default="fp32", metadata=ADJUSTABLE)
    """Precision in which devices average gradients: fp32, or bf16, which halves the traffic."""
    log_every: int = field(default=100, metadata=ADJUSTABLE)
    """Steps between log lines."""
    valid_every: int = field(default=1500, metadata=ADJUSTABLE)
    """Steps between validations."""
    valid_sentences: int = field(default=500, metadata=ADJUSTABLE)
    """Validation sentences to decode for BLEU at each validation; 0 for none."""
    save_every: int = field(default=1500, metadata=ADJUSTABLE)
    """Steps between checkpoints (the paper's 10 minutes, at 0.4 s per step); 0 to use only save_minutes."""
    save_minutes: float = field(default=0.0, metadata=ADJUSTABLE)
    """Minutes between checkpoints; 0 to use only save_every."""
    keep_last: int = field(default=5, metadata=ADJUSTABLE)
    """Number of latest checkpoints to keep."""
    keep_best: int = field(default=1, metadata=ADJUSTABLE)
    """Number of checkpoints to keep in addition, those with the best validation."""
    best_by: str = field(default="loss", metadata=ADJUSTABLE)
    """Criterion of the best checkpoint on the validation set: loss (lowest) or bleu (highest)."""
    patience: int = field(default=0, metadata=ADJUSTABLE)
    """Stop after this many validations without an improvement; 0 never stops early."""
    max_minutes: float = field(default=0.0, metadata=ADJUSTABLE)
    """Wall-clock minutes after which this process validates, saves and ends; 0 for no limit."""
    max_training_minutes: float = field(default=0.0, metadata=ADJUSTABLE)
    """Minutes of training steps over the whole run, excluding start-up, validation and saving; 0 for no limit."""
    max_bad_steps: int = field(default=10, metadata=ADJUSTABLE)
    """Give up after this many consecutive steps without a finite gradient, which change nothing; 0 never gives up."""
    on_divergence: str = field(default="stop", metadata=ADJUSTABLE)
    """Reaction to giving up: stop, or rewind (once) to the previous checkpoint and continue with the batches after."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("steps", "batch_tokens", "warmup_steps", "log_every", "valid_every", "keep_last"):
            _at_least(f"training.{name}", getattr(self, name), 1)
        for name in (
            *(
                "device_tokens",
                "decay_steps",
                "learning_rate",
                "weight_decay",
                "clip_norm",
                "valid_sentences",
                "save_every",
            ),
            *("save_minutes", "keep_best", "patience", "max_minutes", "max_training_minutes", "max_bad_steps"),
        ):
            _at_least(f"training.{name}", getattr(self, name), 0)
        for name in ("label_smoothing", "adam_beta1", "adam_beta2"):
            _fraction(f"training.{name}", getattr(self, name))
        _choice("training.schedule", self.schedule, SCHEDULES)
        _choice("training.optimizer", self.optimizer, OPTIMIZERS)
        _choice("training.reduce_precision", self.reduce_precision, ("fp32", "bf16"))
        _choice("training.best_by", self.best_by, ("loss", "bleu"))
        _choice("training.on_divergence", self.on_divergence, ("stop", "rewind"))
        if not self.adam_eps > 0:
            raise ConfigError(f"training.adam_eps={self.adam_eps} must be above 0")
        if self.schedule == "wsd" and self.decay_steps and self.warmup_steps + self.decay_steps > self.steps:
            raise ConfigError(
                f"training.warmup_steps={self.warmup_steps} and training.decay_steps={self.decay_steps} together are "
                f"more than training.steps={self.steps}: lower one of them"
            )
        if not (self.save_every or self.save_minutes):
            raise ConfigError(
                "training.save_every and training.save_minutes are both 0: set one, or no checkpoint is saved"
            )
        if self.device_tokens > self.batch_tokens:
            raise ConfigError(
                f"training.device_tokens={self.device_tokens} is more than the global "
                f"training.batch_tokens={self.batch_tokens}: lower it, or set it to 0"
            )
        if self.best_by == "bleu" and not self.valid_sentences:
            raise ConfigError("training.best_by=bleu needs training.valid_sentences above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingConfig:
    """Which checkpoints are averaged: by the first of these three settings that is set, or by the validation loss."""

    checkpoints: list[str] = field(default_factory=list)
    """Names of the checkpoints to average (step-00001000, best, ...)."""
    best: int = 0
    """Number of checkpoints to average, those with the best validation."""
    last: int = 5
    """Number of latest checkpoints to average (the paper: 5 for base, 20 for big). If all three settings are unset,
    the validation loss chooses: the last checkpoint, the best one, or the average of the kept last or best ones."""

    def __post_init__(self) -> None:
        """Check the values."""
        _at_least("averaging.best", self.best, 0)
        _at_least("averaging.last", self.last, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """Beam search, as in section 6.1 of the paper, or sampling."""

    strategy: str = "beam"
    """beam (search), or sample (draw `nbest` random translations, reproducible by `seed`)."""
    beam: int = 4
    """Hypotheses per sentence; 1 is greedy search."""
    alpha: float = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    extra_length: int = 50
    """Most word pieces by which a translation may be longer than its source."""
    nbest: int = 1
    """Translations to write per sentence."""
    batch_tokens: int = 4096
    """Source tokens per batch."""
    temperature: float = 1.0
    """Temperature of sampling: below 1 favours probable word pieces, above 1 improbable ones."""
    top_k: int = 0
    """Sample from this many most probable word pieces; 0 for all."""
    top_p: float = 1.0
    """Sample from the smallest set of word pieces whose probabilities sum to this; 1 for all."""
    ensemble: list[str] = field(default_factory=list)
    """Further checkpoints, named like `checkpoint`, whose probabilities are averaged with those of `checkpoint`."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("decoding.strategy", self.strategy, ("beam", "sample"))
        for name in ("beam", "nbest"):
            _between(f"decoding.{name}", getattr(self, name), 1, 10_000)
        _at_least("decoding.batch_tokens", self.batch_tokens, 1)
        _between("decoding.alpha", self.alpha, 0, 10)
        _between("decoding.extra_length", self.extra_length, 0, 1_000_000)
        _at_least("decoding.top_k", self.top_k, 0)
        if not self.temperature > 0:
            raise ConfigError(f"decoding.temperature={self.temperature} must be above 0")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decoding.top_p={self.top_p} must be above 0 and at most 1")
        if self.strategy == "beam" and self.nbest > self.beam:
            raise ConfigError(f"decoding.nbest={self.nbest} is more than decoding.beam={self.beam}: widen the beam")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """The text that `eval` scores."""

    splits: list[str] = field(default_factory=lambda: ["test"])
    """Splits of the prepared data to translate and score."""

    def __post_init__(self) -> None:
        """Check the values."""
        if not self.splits:
            raise ConfigError("evaluation.splits is empty: name at least one, such as [test]")
        for split in self.splits:
            _plain_name("evaluation.splits", split)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportConfig:
    """The format in which a trained model is exported."""

    target: str = "ctranslate2"
    """ctranslate2, huggingface (Marian's format) or safetensors (this project's, with weights and settings only)."""
    quantization: str = "float32"
    """Number format of the weights: float32, or int8 (ctranslate2 only)."""
    folder: str = ""
    """Destination; empty is `<paths.outputs>/<name>/export/<target>-<quantization>`."""
    sample: int = 100
    """Number of sentences whose translations must agree before the export is complete."""
    licence: str = ""
    """Licence of the weights, such as cc-by-4.0, which the model card states."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("export.target", self.target, ("ctranslate2", "huggingface", "safetensors"))
        _choice("export.quantization", self.quantization, ("float32", "int8"))
        _at_least("export.sample", self.sample, 1)
        if self.quantization != "float32" and self.target != "ctranslate2":
            raise ConfigError(f"export.quantization={self.quantization} needs export.target=ctranslate2")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """The machine: device, precision, threads and processes."""

    device: str = "auto"
    """auto (a GPU if there is one), cpu or cuda."""
    precision: str = "auto"
    """auto (bf16 on devices with fast bf16), fp32 or bf16."""
    compile: bool = False
    """Compile the model with torch.compile, which is worthwhile in long runs."""
    threads: int = 0
    """CPU threads per process; 0 divides the cores between the processes on this machine."""
    workers: int = 0
    """Processes that prepare data; 0 is one per core."""
    timeout_minutes: float = 10.0
    """End training on several devices if one process does not respond to the others for this long."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("runtime.device", self.device, ("auto", "cpu", "cuda"))
        _choice("runtime.precision", self.precision, ("auto", "fp32", "bf16"))
        _between("runtime.threads", self.threads, 0, 1024)
        _between("runtime.workers", self.workers, 0, 1024)
        if not 0 < self.timeout_minutes <= 1_000_000:
            raise ConfigError(f"runtime.timeout_minutes={self.timeout_minutes} must be above 0, and at most 1000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingConfig:
    """Experiment trackers; the run always writes its own metrics.jsonl."""

    wandb: str = "disabled"
    """Weights & Biases: disabled, offline (needs no account) or online."""
    project: str = "nmt"
    """Project on Weights & Biases."""
    entity: str = ""
    """Account or team on Weights & Biases; empty is your own."""
    artifact: bool = False
    """Upload the checkpoint that eval scores to Weights & Biases."""
    tensorboard: bool = False
    """Write TensorBoard curves into the run's folder; needs the package tensorboard."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("tracking.wandb", self.wandb, ("disabled", "offline", "online"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """What `attention` draws."""

    part: str = "cross"
    """Attention of the encoder, the decoder, or cross (from the decoder to the encoder)."""
    layer: int = 0
    """Number of the layer, from 1; 0 draws all layers."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("attention.part", self.part, ("encoder", "decoder", "cross"))
        _at_least("attention.layer", self.layer, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """What `batch` shows."""

    step: int = 1
    """Step whose sentences to show."""

    def __post_init__(self) -> None:
        """Check the values."""
        _at_least("batch.step", self.step, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateConfig:
    """What `translate` reads and writes besides `input` and `output`."""

    format: str = "text"
    """text, tsv (source, translation, score) or jsonl (these and the n-best list)."""
    prefix: str = ""
    """File with one line per source sentence: the beginning that its translation must have."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("translate.format", self.format, ("text", "tsv", "jsonl"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table3Config:
    """The rows of the paper's Table 3 that `table3` trains."""

    rows: list[str] = field(default_factory=list)
    """Rows to train and score (base, a1, ..., big); empty is all."""
    scale: str = "full"
    """full (as in the paper), or small (every row on the demo corpus, in minutes)."""

    def __post_init__(self) -> None:
        """Check the values."""
        _choice("table3.scale", self.scale, ("full", "small"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfig:
    """The machine whose costs `describe` estimates, and the form of its answer."""

    device: str = ""
    """Type of device to estimate for (h100, a100, ...); empty is this machine."""
    gpus: int = 0
    """Number of devices to estimate for; 0 is those of this machine, or one of a named device."""
    format: str = "text"
    """text or json."""

    def __post_init__(self) -> None:
        """Check the values."""
        _at_least("describe.gpus", self.gpus, 0)
        _choice("describe.format", self.format, ("text", "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsConfig:
    """Folders, relative to the folder in which the command runs."""

    data: str = "data"
    """Prepared corpora."""
    outputs: str = "outputs"
    """Runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of a run. One tree serves every command, so the same settings always name the same files."""

    name: str = field(default="wmt14_en_de_base", metadata=ADJUSTABLE)
    """Name of the run, which is stored in `<paths.outputs>/<name>/`."""
    seed: int = 1
    """Seed of all randomness: initial weights, order of the batches, dropout, sampling, the demo corpus."""
    checkpoint: str = field(default="averaged", metadata=ADJUSTABLE)
    """Checkpoint to load: averaged, best, last, a step (step-00001000) or a folder."""
    engine: str = field(default="torch", metadata=ADJUSTABLE)
    """Engine that translates: torch, or ctranslate2, which runs the exported model."""
    input: str = field(default="-", metadata=ADJUSTABLE)
    """File to read (plain, .gz or .xz), or - for standard input. For export: text to verify the model with."""
    output: str = field(default="-", metadata=ADJUSTABLE)
    """File to write. By default (-), translate and score write to standard output, report and attention to a file
    in the run's folder. `describe` also accepts json, like describe.format=json."""
    compare: list[str] = field(default_factory=list, metadata=ADJUSTABLE)
    """Runs to compare, by name; the first is the baseline."""
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    averaging: AveragingConfig = field(default_factory=AveragingConfig, metadata=ADJUSTABLE)
    decoding: DecodingConfig = field(default_factory=DecodingConfig, metadata=ADJUSTABLE)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig, metadata=ADJUSTABLE)
    export: ExportConfig = field(default_factory=ExportConfig, metadata=ADJUSTABLE)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig, metadata=ADJUSTABLE)
    tracking: TrackingConfig = field(default_factory=TrackingConfig, metadata=ADJUSTABLE)
    attention: AttentionConfig = field(default_factory=AttentionConfig, metadata=ADJUSTABLE)
    batch: BatchConfig = field(default_factory=BatchConfig, metadata=ADJUSTABLE)
    translate: TranslateConfig = field(default_factory=TranslateConfig, metadata=ADJUSTABLE)
    table3: Table3Config = field(default_factory=Table3Config, metadata=ADJUSTABLE)
    describe: DescribeConfig = field(default_factory=DescribeConfig, metadata=ADJUSTABLE)
    paths: PathsConfig = field(default_factory=PathsConfig, metadata=ADJUSTABLE)

    def __post_init__(self) -> None:
        """Check the top-level values, and the groups against each other."""
        _plain_path("name", self.name)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed={self.seed} must be at least 0 and below 2^63")
        _choice("engine", self.engine, ("torch", "ctranslate2"))
        if self.engine == "ctranslate2" and self.decoding.ensemble:
            raise ConfigError("engine=ctranslate2 translates with one model: remove decoding.ensemble")
        if self.model.tie_embeddings and not self.tokenizer.joint:
            raise ConfigError("model.tie_embeddings=true needs tokenizer.joint=true: change one of the two")
        self._check_averaging()
        self._check_longest_sentence()

    def _check_averaging(self) -> None:
        """Make sure that training keeps the checkpoints to average."""
        averaging, training = self.averaging, self.training
        if averaging.checkpoints:
            return
        if not averaging.best and averaging.last > training.keep_last:
            raise ConfigError(
                f"averaging.last={averaging.last} is more than the training.keep_last={training.keep_last} "
                "checkpoints kept: raise training.keep_last or lower averaging.last"
            )
        if averaging.best > training.keep_best:
            raise ConfigError(
                f"averaging.best={averaging.best} is more than the training.keep_best={training.keep_best} "
                "checkpoints kept: raise training.keep_best or lower averaging.best"
            )

    def _check_longest_sentence(self) -> None:
        """Make sure that batches and learned positions have room for the longest sentence and its end mark."""
        longest = self.data.max_pieces + 1
        too_small = {
            "training.batch_tokens": self.training.batch_tokens < longest,
            "training.device_tokens": 0 < self.training.device_tokens < longest,
            "model.max_positions": self.model.positions == "learned" and self.model.max_positions < longest,
        }
        for key in (key for key, small in too_small.items() if small):
            group, _, name = key.partition(".")
            raise ConfigError(
                f"{key}={getattr(getattr(self, group), name)} is too small for one sentence of "
                f"data.max_pieces={self.data.max_pieces} and its end mark: raise the first or lower the second"
            )

    @property
    def data_folder(self) -> Path:
        """Folder of the prepared corpus."""
        return Path(self.paths.data) / self.data.corpus

    @property
    def run_folder(self) -> Path:
        """Folder of the run."""
        return Path(self.paths.outputs) / self.name

    @property
    def export_folder(self) -> Path:
        """Folder of the exported model."""
        name = f"{self.export.target}-{self.export.quantization}"
        return Path(self.export.folder) if self.export.folder else self.run_folder / "export" / name


def _choice(key: str, value: str, choices: Iterable[str]) -> None:
    choices = tuple(choices)
    if value not in choices:
        raise ConfigError(f"{key}={value} is not one of {', '.join(choices)}; {nearest(value, choices)}")


def _at_least(key: str, value: float, minimum: float) -> None:
    if not value >= minimum:
        raise ConfigError(f"{key}={value} must be at least {minimum}")
    if value == math.inf:
        raise ConfigError(f"{key}={value} must be a finite number")
    if isinstance(value, int) and value >= 2**63:  # libraries count in 64-bit integers
        raise ConfigError(f"{key}={value} must be below 2^63")


def _between(key: str, value: float, minimum: float, maximum: float) -> None:
    if not minimum <= value <= maximum:
        raise ConfigError(f"{key}={value} must be at least {minimum} and at most {maximum}")


def _fraction(key: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(f"{key}={value} must be at least 0 and below 1")


def is_utf8(text: str) -> bool:
    """Return whether a text can be written to a file; bytes from the command line that are not UTF-8 cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _plain_name(key: str, value: str) -> None:
    """Refuse a name that leads to another folder, or that a file system or terminal cannot show."""
    if value in ("", ".", "..") or "/" in value or "\\" in value or not value.isprintable() or len(value) > 64:
        raise ConfigError(f"{key}={value} must be the plain name of a folder, of at most 64 characters")


def _language(key: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise ConfigError(f"{key}={value} must be a language code, such as en or pt-BR: file names contain it")


def _plain_path(key: str, value: str) -> None:
    for part in value.split("/"):
        _plain_name(key, part)
