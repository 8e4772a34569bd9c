"""All settings in one tree, and which of them contradict each other.

The defaults are the base model of "Attention Is All You Need" on WMT14 English-German; the files in `conf/` state
differences from them, and show the paper's values. A setting is a field: its type, its only default, a docstring, and a
check of its value. This module imports nothing slow.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from nmt.config.checks import ADJUSTABLE, Count, Group, check_plain_path, one_of, within
from nmt.config.commands import (
    DescribeConfig,
    ExportConfig,
    OwnConfig,
    ServeConfig,
    SynthesizeConfig,
    Table3Config,
    TeacherConfig,
    TrackingConfig,
    TranslateConfig,
)
from nmt.config.data import DataConfig, NoiseConfig, TokenizerConfig, corpora_of, is_text
from nmt.config.decoding import ONLY_TORCH, DecodingConfig, EvaluationConfig
from nmt.config.folders import local_folder
from nmt.config.model import DECODER_ONLY, ModelConfig
from nmt.config.training import AveragingConfig, TrainingConfig
from nmt.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig(Group):
    """The machine: device, precision, threads and processes."""

    device: Annotated[str, one_of("auto", "cpu", "cuda", "mps")] = "auto"
    """auto (a GPU if there is one), cpu, cuda (also AMD's GPUs) or mps (Apple's GPU)."""
    precision: Annotated[str, one_of("auto", "fp32", "bf16", "fp16")] = "auto"
    """auto (bf16 on devices with fast bf16, fp16 on other GPUs if it is fast there, else fp32), fp32, bf16 or fp16."""
    compile: bool = False
    """Compile the model with torch.compile, which is worthwhile in long runs."""
    cuda_graphs: bool | None = None
    """Record passes of training and steps of the decoder as CUDA graphs, which the GPU replays without waiting for the
    processor; null is true on GPUs of NVIDIA, but for passes if runtime.compile is true."""
    threads: Annotated[int, within(at_least=0, at_most=1024)] = 0
    """CPU threads per process; 0 divides the cores between the processes on this machine. Efficiency cores and the
    second threads of cores are not counted, and neither is more than the quota of a container."""
    kernels: bool = True
    """Compute with operations of this package, which are faster, and equal but for rounding: on a CPU in C, if a C
    compiler is installed, and on GPUs with bf16 in Triton, if that is installed."""
    shard: Annotated[str, one_of("none", "weights")] = "none"
    """What several processes divide among them: none (each keeps all weights), or weights, with their gradients and
    Adam's averages."""
    workers: Annotated[int, within(at_least=0, at_most=1024)] = 0
    """Processes that prepare data; 0 is one per core."""
    timeout_minutes: Annotated[float, within(above=0, at_most=1_000_000)] = 10.0
    """End training on several devices if one process does not respond to the others for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsConfig(Group):
    """Folders, relative to the folder in which the command runs, or addresses such as s3://bucket/folder."""

    data: str = "data"
    """Prepared corpora."""
    outputs: str = "outputs"
    """Runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Group):
    """All settings of a run. One tree serves every command, so the same settings always name the same files."""

    name: Annotated[str, check_plain_path] = field(default="wmt14_en_de_base", metadata=ADJUSTABLE)
    """Name of the run, which is stored in `<paths.outputs>/<name>/`."""
    seed: Count = 1
    """Seed of initial weights, order of the batches, dropout and sampling."""
    checkpoint: str = field(default="averaged", metadata=ADJUSTABLE)
    """Checkpoint to load: averaged, best, last, a step (step-00001000), or the folder of one."""
    engine: str = field(default="torch", metadata=ADJUSTABLE)
    """Engine that translates."""
    input: str = field(default="-", metadata=ADJUSTABLE)
    """File to read (plain, .gz or .xz), or - for standard input. `import` reads the folder of a model in Hugging Face's
    Marian format."""
    output: str = field(default="-", metadata=ADJUSTABLE)
    """File to write. By default (-), translate and score write to standard output, report and attention to a file
    in the run's folder, and synthesize to `<paths.data>/synthetic/<name>`. `describe` also accepts json."""
    compare: list[str] = field(default_factory=list, metadata=ADJUSTABLE)
    """Runs to compare, by name, or NAME:ENGINE for the scores of another engine; the first is the baseline."""
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    own: OwnConfig = field(default_factory=OwnConfig)
    averaging: AveragingConfig = field(default_factory=AveragingConfig, metadata=ADJUSTABLE)
    decoding: DecodingConfig = field(default_factory=DecodingConfig, metadata=ADJUSTABLE)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig, metadata=ADJUSTABLE)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig, metadata=ADJUSTABLE)
    translate: TranslateConfig = field(default_factory=TranslateConfig, metadata=ADJUSTABLE)
    describe: DescribeConfig = field(default_factory=DescribeConfig, metadata=ADJUSTABLE)
    export: ExportConfig = field(default_factory=ExportConfig, metadata=ADJUSTABLE)
    serve: ServeConfig = field(default_factory=ServeConfig, metadata=ADJUSTABLE)
    synthesize: SynthesizeConfig = field(default_factory=SynthesizeConfig, metadata=ADJUSTABLE)
    teacher: TeacherConfig = field(default_factory=TeacherConfig, metadata=ADJUSTABLE)
    table3: Table3Config = field(default_factory=Table3Config, metadata=ADJUSTABLE)
    tracking: TrackingConfig = field(default_factory=TrackingConfig, metadata=ADJUSTABLE)
    paths: PathsConfig = field(default_factory=PathsConfig, metadata=ADJUSTABLE)

    def _check(self) -> None:
        for message in _contradictions(self):
            raise ConfigError(message)

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


def _contradictions(config: Config) -> Iterator[str]:
    """Yield what is wrong with settings of different groups."""
    data, training, model, last = config.data, config.training, config.model, config.averaging.last
    if last > training.keep_last:
        yield (
            f"averaging.last={last} is more than the training.keep_last={training.keep_last} checkpoints kept: "
            "raise training.keep_last or lower averaging.last"
        )
    longest = data.max_pieces + 1
    room = {"training.batch_tokens": training.batch_tokens, "training.device_tokens": training.device_tokens or longest}
    room |= {"model.max_positions": model.max_positions} if model.positions == "learned" else {}
    for key, tokens in room.items():
        if tokens < longest:
            yield (
                f"{key}={tokens} is too small for one sentence of data.max_pieces={data.max_pieces} and its end mark: "
                "change one of them"
            )
    aligned = any(corpus.settings.train_alignments for corpus in corpora_of(data).values())
    if training.guided_weight and not aligned:
        yield "training.guided_weight needs word alignments: name their file in data.train_alignments"
    for wrong, one, other in _pairs(config):
        if wrong:
            yield f"{one} cannot be used with {other}: change one of the two"


def _pairs(config: Config) -> tuple[tuple[object, str, str], ...]:
    """Return pairs of settings that contradict each other, each after whether a run has both."""
    data, training, model, tokenizer = config.data, config.training, config.model, config.tokenizer
    trees, dropping, compiling = not is_text(data.target_lang), config.noise.bpe_dropout, config.runtime.compile
    guided, sharded = training.guided_weight > 0, config.runtime.shard == "weights"
    target, dropout = f"data.target_lang={data.target_lang}", f"noise.bpe_dropout={dropping}"
    to_huggingface, in_int8 = config.export.target == "huggingface", config.export.quantization == "int8"
    decoder_only, search, usual = model.architecture == DECODER_ONLY, config.decoding, DecodingConfig()
    of_torch = [f"decoding.{name}" for name in ONLY_TORCH if getattr(search, name) != getattr(usual, name)]
    return (
        (model.tie_embeddings and not tokenizer.joint, "model.tie_embeddings=true", "tokenizer.joint=false"),
        (data.source == "trees" and not trees, "data.source=trees", target),
        (trees and tokenizer.joint, "tokenizer.joint=true", target),
        (trees and training.valid_sentences, f"training.valid_sentences={training.valid_sentences}", target),
        (trees and training.init_vocabulary == "extend", "training.init_vocabulary=extend", target),
        (trees and config.own.derive, "own.derive=true", target),
        (trees and dropping, dropout, target),
        (tokenizer.folder and training.uses_old_vocabulary, "tokenizer.folder", "the tokenizer of training.init_from"),
        (  # the type of the tokenizer of another model is known later
            dropping and tokenizer.model_type != "bpe" and not training.init_from,
            dropout,
            f"tokenizer.model_type={tokenizer.model_type}",
        ),
        (guided and dropping, "training.guided_weight", dropout),
        (guided and decoder_only, "training.guided_weight", "model.architecture=decoder_only"),
        (decoder_only and model.encoder_layers, "model.encoder_layers", "model.architecture=decoder_only"),
        (decoder_only and model.positions == "learned", "model.positions=learned", "model.architecture=decoder_only"),
        (guided and compiling, "training.guided_weight", "runtime.compile=true"),
        (sharded and compiling, "runtime.shard=weights", "runtime.compile=true"),
        (sharded and training.optimizer != "adam", "runtime.shard=weights", f"training.optimizer={training.optimizer}"),
        (config.engine == "ctranslate2" and of_torch, "engine=ctranslate2", ", ".join(of_torch)),
        (to_huggingface and in_int8, "export.target=huggingface", "export.quantization=int8"),
    )
