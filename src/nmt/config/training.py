"""The settings of training and of averaging its checkpoints."""

from dataclasses import dataclass, field
from typing import Annotated

from nmt.config.checks import ADJUSTABLE, AboveZero, Amount, Count, Group, Positive, Share, one_of
from nmt.errors import ConfigError

SCHEDULES_WITHOUT_END = ("inverse_sqrt", "constant")
"""The schedules in which the rate of a step does not depend on the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig(Group):
    """Section 5 of the paper: batches, schedule, optimizer, regularisation; and when to validate and save."""

    steps: Positive = field(default=100_000, metadata=ADJUSTABLE)
    """Number of updates of the weights."""
    batch_tokens: Positive = 25_000
    """Most source tokens, and most target tokens, in a global batch (over all devices)."""
    group_by_length: bool = True
    """Whether the sentences of a global batch have similar lengths, like the paper's. If not, the lengths are random,
    which needs fewer steps if batches are small."""
    device_tokens: Count = field(default=0, metadata=ADJUSTABLE)
    """Most source tokens, and most target tokens, in a micro-batch on one device; larger shares accumulate
    gradients. 0 for no limit."""
    schedule: str = "inverse_sqrt"
    """Learning rate after the warmup."""
    warmup_steps: Positive = 4000
    """Steps over which the rate rises linearly."""
    learning_rate: Amount = 0.0
    """Peak learning rate; 0 for the paper's (d_model * warmup_steps)^-0.5."""
    label_smoothing: Share = 0.1
    """epsilon_ls: probability spread evenly over the vocabulary."""
    optimizer: str = "adam"
    """Optimizer."""
    adam_beta1: Share = 0.9
    """Adam's decay rate of the mean gradient."""
    adam_beta2: Share = 0.98
    """Adam's decay rate of the mean squared gradient."""
    adam_eps: AboveZero = 1e-9
    """Adam's epsilon."""
    weight_decay: Amount = 0.0
    """Decoupled weight decay (AdamW)."""
    clip_norm: Amount = 0.0
    """Largest norm of the gradient, which is scaled down to it; 0 for no clipping, like the paper."""
    guided_weight: Amount = 0.0
    """Weight of the loss of the first cross-attention head of the last decoder layer but one on given word alignments
    (data.train_alignments), such as 0.05; 0 for none."""
    sampled_words: Count = 0
    """On a CPU, estimate the training loss over the words of a micro-batch and this many others, drawn at random and
    weighted by how many they stand for (Jean et al., 2015), such as 3000; 0 for all words. Held-out text has all."""
    log_every: Positive = field(default=100, metadata=ADJUSTABLE)
    """Steps between log lines."""
    valid_every: Positive = field(default=1500, metadata=ADJUSTABLE)
    """Steps between validations."""
    valid_sentences: Count = field(default=500, metadata=ADJUSTABLE)
    """Validation sentences to decode for BLEU at each validation; 0 for none."""
    save_every: Positive = field(default=1500, metadata=ADJUSTABLE)
    """Steps between checkpoints (the paper's 10 minutes, at 0.4 s per step)."""
    keep_last: Positive = field(default=5, metadata=ADJUSTABLE)
    """Number of latest checkpoints to keep, of those that save_every asks for."""
    keep_best: Count = field(default=1, metadata=ADJUSTABLE)
    """Number of checkpoints to keep in addition, those with the lowest loss on the validation set."""
    patience: Count = field(default=0, metadata=ADJUSTABLE)
    """Stop after this many validations without an improvement; 0 never stops early."""
    max_training_minutes: Amount = field(default=0.0, metadata=ADJUSTABLE)
    """Minutes of training steps over the whole run, excluding start-up, validation and saving; 0 for no limit. If
    they end the run before its steps do, the schedules linear and cosine reach zero then, and their warmup takes
    at most 12% of the steps, or a sixth of warmup_steps if that is more."""
    init_from: str = ""
    """Model to begin from, with a fresh optimizer and from the start of the data: the name of a run (its averaged, else
    best, else last checkpoint), or the folder of a checkpoint. The new model takes its shape (model.*),
    unless the command line gives another one. Empty begins with random weights."""
    init_vocabulary: Annotated[str, one_of("old", "new", "extend")] = "old"
    """Vocabulary with init_from: old (that model's), new (learned from this text) or extend (the old one and pieces of
    this text, up to tokenizer.vocab_size). A new piece gets the mean vector of the old pieces that it consists of."""
    freeze: list[str] = field(default_factory=list)
    """Weights that training does not change: encoder, decoder, embeddings, or names in which * stands for any text."""
    muon_rate: AboveZero = 1.0
    """Muon's learning rate, as a fraction of training.learning_rate, which is Adam's."""

    def _check(self) -> None:
        if self.device_tokens > self.batch_tokens:
            raise ConfigError(
                f"training.device_tokens={self.device_tokens} is more than the global "
                f"training.batch_tokens={self.batch_tokens}: lower it, or set it to 0"
            )
        if not self.init_from and self.init_vocabulary != "old":
            raise ConfigError("training.init_vocabulary needs training.init_from: name a model")

    @property
    def warmup_warning(self) -> str:
        """A warning if training ends before the warmup does, else an empty string."""
        rises_only = (
            f"training.warmup_steps={self.warmup_steps} is above training.steps={self.steps}: the rate only rises"
        )
        return f"{rises_only}; lower training.warmup_steps" if self.warmup_steps > self.steps else ""

    @property
    def uses_old_vocabulary(self) -> bool:
        """Whether the tokenizer of the model to begin from is kept or extended."""
        return bool(self.init_from) and self.init_vocabulary != "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingConfig(Group):
    """Which checkpoints are averaged."""

    last: Count = 5
    """Number of last checkpoints to average (the paper: 5 for base, 20 for big). 0 translates the development set with
    the last checkpoint, and with the averages of the last and of the best ones that are kept, and takes the best."""
