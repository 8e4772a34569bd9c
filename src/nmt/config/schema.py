"""Every setting: its name, its type, its one default and what it means.

The defaults are the base model of "Attention Is All You Need" on WMT14 English-German; the files in
`conf/` state only what differs from them. Standard library only, so that anything may import it.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from nmt.errors import ConfigError, nearest

SCHEDULES = ("inverse_sqrt", "cosine", "constant", "wsd")
"""The functions that are registered in nmt.training.schedule."""
OPTIMIZERS = ("adam",)
"""The functions that are registered in nmt.training.optimizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Where the parallel text comes from and what is kept of it."""

    corpus: str = "wmt14_en_de"
    """Name of the prepared data: it lies in `<paths.data>/<corpus>/`."""
    source: str = "hub"
    """Kind of source: hub (Hugging Face), files (your own), demo (the embedded grammar)."""
    source_lang: str = "en"
    """Language to translate from."""
    target_lang: str = "de"
    """Language to translate into."""
    train: list[str] = field(default_factory=lambda: ["train"])
    """Training text: a Hub split, or files (source side first, or one file that holds both)."""
    valid: list[str] = field(default_factory=lambda: ["validation"])
    """Development text, like `train`."""
    test: list[str] = field(default_factory=lambda: ["test"])
    """Test text, like `train`."""
    columns: list[str] = field(default_factory=list)
    """Columns of the source and the target side, where tables name them otherwise than after the languages."""
    hold_out: float = 0.0
    """Share of the training pairs that is set aside for `valid`, and as much for `test`, where these name nothing."""
    hub_dataset: str = "wmt/wmt14"
    """Data set on the Hub, or a local folder in the Hub's layout."""
    hub_config: str = "de-en"
    """Configuration of the Hub data set."""
    hub_revision: str = "b199e406369ec1b7634206d3ded5ba45de2fe696"
    """Revision of the Hub data set; a full commit, so that the text never changes."""
    check_counts: bool = True
    """Refuse a Hub data set whose number of pairs is known and is another."""
    drop_copies: bool = False
    """Drop training pairs whose sides are the same text."""
    max_words: int = 250
    """Drop training pairs with more words than this on a side; 0 keeps them."""
    max_ratio: float = 0.0
    """Drop training pairs whose sides differ in length by more than this factor; 0 keeps them."""
    deduplicate: bool = False
    """Drop training pairs seen before."""
    max_pieces: int = 256
    """Drop training pairs with more word pieces than this on a side."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        _choice("data.source", self.source, ("hub", "files", "demo"))
        _plain_name("data.corpus", self.corpus)
        if not 0 <= self.hold_out < 0.5:
            raise ConfigError(f"data.hold_out={self.hold_out} must be at least 0 and below 0.5: it is taken twice")
        if self.columns and (len(self.columns) != 2 or len({*self.columns}) != 2):
            raise ConfigError(f"data.columns=[{','.join(self.columns)}] must name two columns, the source side first")
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
    """How text becomes word pieces."""

    model_type: str = "bpe"
    """SentencePiece model: bpe or unigram."""
    vocab_size: int = 37_000
    """Number of word pieces, the four special ones included."""
    joint: bool = True
    """One vocabulary for both languages; false trains one for each."""
    normalization: str = "identity"
    """Text normalisation, which cannot be undone: identity, nfkc, nmt_nfkc (and their _cf forms)."""
    character_coverage: float = 1.0
    """Share of the characters that get a piece of their own; the rest becomes unknown."""
    training_sentences: int = 5_000_000
    """Train on a random sample of at most this many sentences; 0 takes all (and their memory)."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
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
    """The Transformer, in the paper's letters (sections 3 and Table 3)."""

    layers: int = 6
    """N: layers of the encoder, and of the decoder."""
    d_model: int = 512
    """Width of the residual stream."""
    d_ff: int = 2048
    """Inner width of the feed-forward layers."""
    heads: int = 8
    """h: attention heads."""
    d_k: int = 0
    """Width of a head's queries and keys; 0 is the paper's d_model / h."""
    d_v: int = 0
    """Width of a head's values; 0 is the paper's d_model / h."""
    kv_heads: int = 0
    """Heads that keys and values are shared by (grouped-query attention); 0 is one for each head."""
    dropout: float = 0.1
    """P_drop: on each sub-layer's output and on the sums of embeddings and positions."""
    norm: str = "layer"
    """Normalisation: layer (the paper's LayerNorm) or rms."""
    norm_placement: str = "post"
    """post: the paper's LayerNorm(x + Sublayer(x)); pre: x + Sublayer(LayerNorm(x))."""
    activation: str = "relu"
    """Inside the feed-forward layers: relu (the paper's), gelu or swiglu."""
    positions: str = "sinusoidal"
    """sinusoidal (the paper's), learned (Table 3, row E) or rotary."""
    max_positions: int = 1024
    """Longest sentence, in word pieces, that learned positions can tell apart."""
    initialization: str = "glorot"
    """First weights: glorot (the authors'), or small (normal, 0.02), from which small batches learn in fewer steps."""
    tie_embeddings: bool = True
    """One matrix for source and target embeddings and the projection before the softmax."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        for name in ("layers", "d_model", "d_ff", "heads", "max_positions"):
            _at_least(f"model.{name}", getattr(self, name), 1)
        for name in ("d_k", "d_v", "kv_heads"):
            _at_least(f"model.{name}", getattr(self, name), 0)
        _fraction("model.dropout", self.dropout)
        _choice("model.norm", self.norm, ("layer", "rms"))
        _choice("model.norm_placement", self.norm_placement, ("post", "pre"))
        _choice("model.activation", self.activation, ("relu", "gelu", "swiglu"))
        _choice("model.initialization", self.initialization, ("glorot", "small"))
        _choice("model.positions", self.positions, ("sinusoidal", "learned", "rotary"))
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
    def key_size(self) -> int:
        """d_k, worked out where it is left to the paper's rule."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_size(self) -> int:
        """d_v, worked out where it is left to the paper's rule."""
        return self.d_v or self.d_model // self.heads

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """Section 5 of the paper: batches, schedule, optimizer, regularisation; and when to look and save."""

    steps: int = 100_000
    """Updates to make."""
    batch_tokens: int = 25_000
    """Most source tokens, and most target tokens, of a global batch (over all devices)."""
    device_tokens: int = 0
    """Most tokens a side that one device takes at once; the rest is accumulated. 0: its whole share."""
    schedule: str = "inverse_sqrt"
    """Learning rate after the warmup: inverse_sqrt (the paper's), cosine (to zero), constant, or wsd (constant, then a
    linear decay to zero over the last decay_steps)."""
    warmup_steps: int = 4000
    """Steps over which the rate rises linearly."""
    decay_steps: int = 0
    """Steps at the end over which schedule=wsd lowers the rate to zero; 0: a fifth of all steps."""
    learning_rate: float = 0.0
    """Peak rate; 0 is the paper's (d_model * warmup_steps)^-0.5."""
    label_smoothing: float = 0.1
    """epsilon_ls: probability spread evenly over the vocabulary."""
    optimizer: str = "adam"
    """The optimizer: adam."""
    adam_beta1: float = 0.9
    """Adam's decay of the gradient's mean."""
    adam_beta2: float = 0.98
    """Adam's decay of the gradient's square."""
    adam_eps: float = 1e-9
    """Adam's epsilon."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW)."""
    clip_norm: float = 0.0
    """Scale the gradient down to this norm; 0 leaves it, as the paper does."""
    reduce_precision: str = "fp32"
    """What gradients are averaged over the devices in: fp32, or bf16, which halves what is sent."""
    log_every: int = 100
    """Steps between two lines of the log."""
    valid_every: int = 1500
    """Steps between two validations."""
    valid_sentences: int = 500
    """Development sentences to decode for BLEU at each validation; 0 decodes none."""
    save_every: int = 1500
    """Steps between two checkpoints (the paper's 10 minutes, at its 0.4 s a step); 0 leaves it to save_minutes."""
    save_minutes: float = 0.0
    """Minutes between two checkpoints; 0 leaves it to save_every."""
    keep_last: int = 5
    """Checkpoints to keep, newest first."""
    keep_best: int = 1
    """Checkpoints to keep besides, best on the development set first."""
    best_by: str = "loss"
    """What best means on the development set: loss (lowest) or bleu (highest)."""
    patience: int = 0
    """Stop after this many validations without a new best; 0 never stops early."""
    max_minutes: float = 0.0
    """Wall-clock minutes from the start of this process within which it validates, saves and ends; 0: no limit."""
    max_training_minutes: float = 0.0
    """Minutes of training steps in all parts of the run, without start-up, validation and saving; 0: no limit."""
    max_bad_steps: int = 10
    """Give up after this many steps in a row without a finite gradient (they change nothing); 0 never does."""
    on_divergence: str = "stop"
    """What giving up means: stop, or rewind (once) to the last checkpoint before and go on with the batches after."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
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
            raise ConfigError("training.save_every and training.save_minutes are both 0: set one, or nothing is saved")
        if self.device_tokens > self.batch_tokens:
            raise ConfigError(
                f"training.device_tokens={self.device_tokens} is more than the global "
                f"training.batch_tokens={self.batch_tokens}: lower it, or set it to 0"
            )
        if self.best_by == "bleu" and not self.valid_sentences:
            raise ConfigError("training.best_by=bleu needs training.valid_sentences above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingConfig:
    """Which checkpoints are averaged: the first of the three that is set; if none is, the development loss chooses."""

    checkpoints: list[str] = field(default_factory=list)
    """These, by name (step-00001000, best, ...)."""
    best: int = 0
    """This many, best on the development set first."""
    last: int = 5
    """This many, last steps first (the paper: 5 for base, 20 for big). 0, with the others unset: as the development
    loss chooses among the last, the best, and the averages of the last and of the best that are kept."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        _at_least("averaging.best", self.best, 0)
        _at_least("averaging.last", self.last, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingConfig:
    """Beam search, as in section 6.1 of the paper; or sampling."""

    strategy: str = "beam"
    """beam (search for the best) or sample (draw `nbest` translations at random, after `seed`)."""
    beam: int = 4
    """Hypotheses a sentence; 1 is greedy search."""
    alpha: float = 0.6
    """Length penalty, in GNMT's form: log-probability / ((5 + length) / 6)^alpha."""
    extra_length: int = 50
    """Longest translation: the source's length in pieces plus this."""
    nbest: int = 1
    """Translations to give for each sentence."""
    batch_tokens: int = 4096
    """Source tokens decoded at once."""
    temperature: float = 1.0
    """Sampling: below 1 the probable becomes more probable, above 1 less."""
    top_k: int = 0
    """Sampling: draw among this many most probable word pieces; 0 is all."""
    top_p: float = 1.0
    """Sampling: draw among the fewest word pieces that are this probable together; 1 is all."""
    ensemble: list[str] = field(default_factory=list)
    """More checkpoints, whose mean probability with that of `checkpoint` decides; named as that is."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
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
    """What `eval` scores."""

    splits: list[str] = field(default_factory=lambda: ["test"])
    """Splits of the prepared data to translate and score."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        if not self.splits:
            raise ConfigError("evaluation.splits is empty: name at least one, such as [test]")
        for split in self.splits:
            _plain_name("evaluation.splits", split)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportConfig:
    """What a trained model is made into for use elsewhere."""

    target: str = "ctranslate2"
    """ctranslate2, huggingface (Marian's format) or safetensors (this project's own, weights and settings alone)."""
    quantization: str = "float32"
    """Numbers of the weights: float32, or int8 (ctranslate2 alone)."""
    folder: str = ""
    """Where it lies; empty is `<paths.outputs>/<name>/export/<target>-<quantization>`."""
    sample: int = 100
    """Sentences whose translations must agree before the export is called done."""
    licence: str = ""
    """Licence of the weights, for the model card, such as cc-by-4.0."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        _choice("export.target", self.target, ("ctranslate2", "huggingface", "safetensors"))
        _choice("export.quantization", self.quantization, ("float32", "int8"))
        _at_least("export.sample", self.sample, 1)
        if self.quantization != "float32" and self.target != "ctranslate2":
            raise ConfigError(f"export.quantization={self.quantization} is for export.target=ctranslate2 alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """The machine."""

    device: str = "auto"
    """auto (a GPU where there is one), cpu or cuda."""
    precision: str = "auto"
    """auto (bf16 where the device is good at it), fp32 or bf16."""
    compile: bool = False
    """Compile the model with torch.compile; pays in long runs."""
    threads: int = 0
    """CPU threads of a process; 0 shares all cores between the processes of this machine."""
    workers: int = 0
    """Processes for data preparation; 0 is one for each core."""
    timeout_minutes: float = 10.0
    """Training on several devices ends when a process has not answered the others for so long."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        _choice("runtime.device", self.device, ("auto", "cpu", "cuda"))
        _choice("runtime.precision", self.precision, ("auto", "fp32", "bf16"))
        _between("runtime.threads", self.threads, 0, 1024)
        _between("runtime.workers", self.workers, 0, 1024)
        if not 0 < self.timeout_minutes <= 1_000_000:
            raise ConfigError(f"runtime.timeout_minutes={self.timeout_minutes} must be above 0, and at most 1000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingConfig:
    """Who else is told about a run; its own metrics.jsonl is always written."""

    wandb: str = "disabled"
    """Weights & Biases: disabled, offline (needs no account) or online."""
    project: str = "nmt"
    """Project there."""
    entity: str = ""
    """Account or team there; empty is your own."""
    artifact: bool = False
    """Keep there the checkpoint that eval scores."""
    tensorboard: bool = False
    """Write the curves for TensorBoard, too, into the run's folder; needs the package tensorboard."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        _choice("tracking.wandb", self.wandb, ("disabled", "offline", "online"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """What `attention` draws of a sentence."""

    part: str = "cross"
    """Whose attention: encoder, decoder, or cross (of the decoder to the encoder)."""
    layer: int = 0
    """A layer, counted from 1; 0 draws them all."""

    def __post_init__(self) -> None:
        """Check the values against each other."""
        _choice("attention.part", self.part, ("encoder", "decoder", "cross"))
        _at_least("attention.layer", self.layer, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsConfig:
    """Where things lie; relative to the folder the command is run in."""

    data: str = "data"
    """Prepared corpora."""
    outputs: str = "outputs"
    """Runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of a run. One tree serves every stage, so the same words name the same files."""

    name: str = "wmt14_en_de_base"
    """Name of the run: it lies in `<paths.outputs>/<name>/`."""
    device: str = ""
    """Describe: estimate for this device (h100, a100, ...); empty is this machine."""
    gpus: int = 0
    """Describe: estimate for so many of them; 0 is those of this machine, or one of a device that is named."""
    rows: list[str] = field(default_factory=list)
    """Table3: these rows (base, a1, ..., big); none named means all."""
    scale: str = "full"
    """Table3: full (as in the paper) or small (all rows on the demo corpus, to see them run)."""
    step: int = 1
    """Batch: the step whose sentences to show."""
    seed: int = 1
    """Seed of everything random: initial weights, order of the batches, dropout, the demo corpus."""
    checkpoint: str = "averaged"
    """What eval and translate load: averaged, best, last, a step (step-00001000) or a folder."""
    engine: str = "torch"
    """What eval and translate compute with: torch, or ctranslate2 (what `nmt export` made, as it will be used)."""
    input: str = "-"
    """Translate, score: a file to read (plain, .gz or .xz), - for standard input. Export: text to verify it with."""
    output: str = "-"
    """A file to write. - is standard output for translate and score, a file in the run's folder for report and
    attention, and text for describe, which knows json besides."""
    format: str = "text"
    """Translate: text, tsv (source, translation, score) or jsonl (these and the n-best list)."""
    prefix: str = ""
    """Translate: a file with the beginning that the translation of each line must have."""
    compare: list[str] = field(default_factory=list)
    """Report, compare: runs to put beside each other, by name; the first is what the others are measured against."""
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    averaging: AveragingConfig = field(default_factory=AveragingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    paths: PathsConfig = field(default_factory=PathsConfig)

    def __post_init__(self) -> None:
        """Check the groups against each other."""
        _plain_path("name", self.name)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed={self.seed} must be at least 0 and below 2^63")
        _choice("engine", self.engine, ("torch", "ctranslate2"))
        _choice("format", self.format, ("text", "tsv", "jsonl"))
        if self.engine == "ctranslate2" and self.decoding.ensemble:
            raise ConfigError("engine=ctranslate2 translates with one model: leave decoding.ensemble out")
        _at_least("gpus", self.gpus, 0)
        _at_least("step", self.step, 1)
        _choice("scale", self.scale, ("full", "small"))
        kept = self.training.keep_last
        if not self.averaging.checkpoints and not self.averaging.best and self.averaging.last > kept:
            raise ConfigError(
                f"averaging.last={self.averaging.last} is more than the training.keep_last={kept} "
                "checkpoints that are kept: raise training.keep_last or lower averaging.last"
            )
        if self.averaging.best > self.training.keep_best and not self.averaging.checkpoints:
            raise ConfigError(
                f"averaging.best={self.averaging.best} is more than the training.keep_best={self.training.keep_best} "
                "checkpoints that are kept: raise training.keep_best or lower averaging.best"
            )
        if self.model.tie_embeddings and not self.tokenizer.joint:
            raise ConfigError("model.tie_embeddings=true needs tokenizer.joint=true: set one of the two otherwise")
        if self.data.max_pieces + 1 > self.training.batch_tokens:
            raise ConfigError(
                f"training.batch_tokens={self.training.batch_tokens} cannot hold one sentence of "
                f"data.max_pieces={self.data.max_pieces} and its end mark: raise the first or lower the second"
            )
        if 0 < self.training.device_tokens < self.data.max_pieces + 1:
            raise ConfigError(
                f"training.device_tokens={self.training.device_tokens} cannot hold one sentence of "
                f"data.max_pieces={self.data.max_pieces} and its end mark: raise the first or lower the second"
            )
        if self.model.positions == "learned" and self.data.max_pieces + 1 > self.model.max_positions:
            raise ConfigError(
                f"model.max_positions={self.model.max_positions} is too few for "
                f"data.max_pieces={self.data.max_pieces}: raise the first or lower the second"
            )

    @property
    def data_folder(self) -> Path:
        """Where the prepared corpus lies."""
        return Path(self.paths.data) / self.data.corpus

    @property
    def run_folder(self) -> Path:
        """Where the run lies."""
        return Path(self.paths.outputs) / self.name

    @property
    def export_folder(self) -> Path:
        """Where the export lies."""
        name = f"{self.export.target}-{self.export.quantization}"
        return Path(self.export.folder) if self.export.folder else self.run_folder / "export" / name


def _choice(key: str, value: str, choices: Iterable[str]) -> None:
    choices = tuple(choices)
    if value not in choices:
        raise ConfigError(f"{key}={value} is not one of {', '.join(choices)}; {nearest(value, choices)}")


def _at_least(key: str, value: float, least: float) -> None:
    if not value >= least:
        raise ConfigError(f"{key}={value} must be at least {least}")
    if value == math.inf:
        raise ConfigError(f"{key}={value} must be a finite number")
    if isinstance(value, int) and value >= 2**63:  # what libraries count with
        raise ConfigError(f"{key}={value} must be below 2^63")


def _between(key: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ConfigError(f"{key}={value} must be at least {least} and at most {most}")


def _fraction(key: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(f"{key}={value} must be at least 0 and below 1")


def is_utf8(text: str) -> bool:
    """Whether a text can be written to a file; one that was no UTF-8 on the command line cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _plain_name(key: str, value: str) -> None:
    """Refuse what would lead to another folder, or what a file system or a terminal cannot show."""
    if value in ("", ".", "..") or "/" in value or "\\" in value or not value.isprintable() or len(value) > 64:
        raise ConfigError(f"{key}={value} must be the plain name of a folder, of at most 64 characters")


def _language(key: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise ConfigError(f"{key}={value} must be the code of a language, such as en or pt-BR: it names files")


def _plain_path(key: str, value: str) -> None:
    for part in value.split("/"):
        _plain_name(key, part)
