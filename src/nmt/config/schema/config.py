"""The settings of the core in one tree, and how they are checked against each other."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from nmt.config.capabilities import check_capabilities
from nmt.config.checks import ADJUSTABLE, check_choice, check_plain_path
from nmt.config.choices import CHOICES, is_text
from nmt.config.folders import local_folder
from nmt.config.schema.commands import (
    BatchConfig,
    DescribeConfig,
    TranslateConfig,
)
from nmt.config.schema.data import DataConfig, TokenizerConfig
from nmt.config.schema.decoding import DecodingConfig, EvaluationConfig
from nmt.config.schema.model import ModelConfig
from nmt.config.schema.runtime import PathsConfig, RuntimeConfig
from nmt.config.schema.training import AveragingConfig, TrainingConfig
from nmt.discovery import features, imported
from nmt.errors import ConfigError

Settings = TypeVar("Settings")

WITHOUT_SPACES = ("zh", "ja", "th", "km", "lo", "my")
"""Languages that are written without spaces between words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of a run. One tree serves every command, so the same settings always name the same files."""

    name: str = field(default="wmt14_en_de_base", metadata=ADJUSTABLE)
    """Name of the run, which is stored in `<paths.outputs>/<name>/`."""
    seed: int = 1
    """Seed of initial weights, order of the batches, dropout and sampling, but not of the demo corpus (data.seed)."""
    checkpoint: str = field(default="averaged", metadata=ADJUSTABLE)
    """Checkpoint to load: averaged, best, last, a step (step-00001000), or the folder of one."""
    engine: str = field(default="torch", metadata=ADJUSTABLE)
    """Engine that translates."""
    input: str = field(default="-", metadata=ADJUSTABLE)
    """File to read (plain, .gz or .xz), or - for standard input."""
    output: str = field(default="-", metadata=ADJUSTABLE)
    """File to write. By default (-), translate and score write to standard output, report and attention to a file
    in the run's folder. `describe` also accepts json."""
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    averaging: AveragingConfig = field(default_factory=AveragingConfig, metadata=ADJUSTABLE)
    decoding: DecodingConfig = field(default_factory=DecodingConfig, metadata=ADJUSTABLE)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig, metadata=ADJUSTABLE)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig, metadata=ADJUSTABLE)
    batch: BatchConfig = field(default_factory=BatchConfig, metadata=ADJUSTABLE)
    translate: TranslateConfig = field(default_factory=TranslateConfig, metadata=ADJUSTABLE)
    describe: DescribeConfig = field(default_factory=DescribeConfig, metadata=ADJUSTABLE)
    paths: PathsConfig = field(default_factory=PathsConfig, metadata=ADJUSTABLE)

    def __post_init__(self) -> None:
        """Check the top-level values, and the groups against each other."""
        check_plain_path("name", self.name)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed={self.seed} must be at least 0 and below 2^63")
        check_choice("engine", self.engine, CHOICES["engine"])
        if self.model.tie_embeddings and not self.tokenizer.joint:
            raise ConfigError("model.tie_embeddings=true needs tokenizer.joint=true: change one of the two")
        self._check_target_side()
        self._check_averaging()
        self._check_longest_sentence()
        self._check_utility()
        for feature in features().values():
            if feature.check:
                imported(feature.check)(self)
        check_capabilities(self)

    def _check_target_side(self) -> None:
        """Refuse settings that need a target side of text if it is not text."""
        target = self.data.target_lang
        if is_text(target):
            return
        if self.tokenizer.joint:
            raise ConfigError(f"data.target_lang={target} needs tokenizer.joint=false: its symbols are no words")
        if self.training.valid_sentences:
            raise ConfigError(f"training.valid_sentences needs text to score with BLEU, not {target}: set it to 0")

    def _check_averaging(self) -> None:
        """Make sure that training keeps the checkpoints to average."""
        if self.averaging.last > self.training.keep_last:
            raise ConfigError(
                f"averaging.last={self.averaging.last} is more than the training.keep_last={self.training.keep_last} "
                "checkpoints kept: raise training.keep_last or lower averaging.last"
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

    def _check_utility(self) -> None:
        """Refuse a utility that finds no words in the target language."""
        language = self.data.target_lang.lower().replace("_", "-").partition("-")[0]
        if self.decoding.strategy == "mbr" and self.decoding.utility == "bleu" and language in WITHOUT_SPACES:
            raise ConfigError(
                "decoding.utility=bleu compares the words between spaces, which "
                f"data.target_lang={self.data.target_lang} does not have: set decoding.utility=chrf"
            )

    def of(self, kind: type[Settings]) -> Settings:
        """Return what has the settings of this class, which a feature declares: a group, or this tree."""
        if isinstance(self, kind):
            return self
        for each in fields(self):
            if isinstance(group := getattr(self, each.name), kind):
                return group
        raise LookupError(f"no group of settings has those of {kind.__name__}")

    @property
    def data_folder(self) -> Path:
        """Folder of the prepared corpus."""
        return self.corpora_folder / self.data.corpus

    @property
    def run_folder(self) -> Path:
        """Folder of the run."""
        return self.runs_folder / self.name

    @property
    def corpora_folder(self) -> Path:
        """Folder of all prepared corpora; the local copy if it is elsewhere."""
        return local_folder(self.paths.data)

    @property
    def runs_folder(self) -> Path:
        """Folder of all runs; the local copy if it is elsewhere."""
        return local_folder(self.paths.outputs)
