"""The settings that belong to one command each."""

import re
from dataclasses import dataclass, field
from typing import Annotated

from nmt.config.checks import ADJUSTABLE, Amount, Count, Group, check_plain_name, one_of, within
from nmt.config.folders import is_address
from nmt.errors import ConfigError, nearest

LANGUAGES = ("data.source_lang", "data.target_lang")
HOLD_OUT, VOCABULARY = "data.hold_out", "tokenizer.vocab_size"
OF_DATA = (*LANGUAGES, HOLD_OUT, VOCABULARY)
"""Settings that `own.derive` derives before the text is prepared."""
SHAPE = ("model.layers", "model.d_model", "model.d_ff", "model.heads")
"""Settings that are derived together or not at all."""
DERIVED = (
    *OF_DATA,
    *SHAPE,
    "model.dropout",
    "training.batch_tokens",
    "training.schedule",
    "training.learning_rate",
    "training.steps",
    "training.weight_decay",
    "training.warmup_steps",
    "training.valid_every",
    "training.save_every",
    "training.patience",
    "noise.bpe_dropout",
)
"""All settings that are derived."""
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]_-]+")
"""As browsers write it in the header Origin, which is compared letter by letter."""
_ENDPOINT = re.compile(r"https?://[^\s/?#@]+(/[^\s?#@]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateConfig(Group):
    """What `translate` reads and writes besides `input` and `output`."""

    format: Annotated[str, one_of("text", "tsv", "jsonl", "bracketed", "drawn")] = "text"
    """text, tsv (source, translation, score) or jsonl (these and the n-best list); of a model of trees also bracketed
    (a line per tree) or drawn (as text, a line per phrase and word)."""
    alignments: str = ""
    """File to write with one line per source sentence: the links between its words and those of its best translation,
    in Pharaoh format (0-0 1-2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfig(Group):
    """The machine for which `describe` estimates memory and time."""

    device: str = ""
    """Type of device to estimate for (h100, a100, ...); empty is this machine."""
    gpus: Count = 0
    """Number of devices to estimate for; 0 is those of this machine, or one of a named device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfig(Group):
    """Settings that follow from the text and the machine."""

    derive: bool = False
    """Derive the languages from the names of the files, and the share of held-out text, the size of the vocabulary,
    width and dropout of the model, BPE-dropout, batch, steps, schedule, weight decay and Muon's learning rate from the
    size of the text, the minutes and the speed of this machine, unless you give them. A run that has begun keeps its
    values."""
    minutes: Annotated[float, within(at_least=0, at_most=1_000_000)] = 0.0
    """Minutes of training steps to plan for; 0 for those of training.max_training_minutes, which end the run whatever
    the speed, or, if these are 0 too, for as many as suit the text, at most an hour."""
    keep: list[str] = field(default_factory=list, metadata=ADJUSTABLE)
    """Settings that are not derived; those that you give are among them."""

    def _check(self) -> None:
        if unknown := [name for name in self.keep if name not in DERIVED]:
            raise ConfigError(f"own.keep names {unknown[0]}, which is not derived; {nearest(unknown[0], DERIVED)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportConfig(Group):
    """The format in which a trained model is exported."""

    target: str = "ctranslate2"
    """Format."""
    quantization: Annotated[str, one_of("float32", "int8")] = "float32"
    """Number format of the weights: float32, or int8 (not for huggingface)."""
    folder: str = ""
    """Destination: a new or empty folder, or one with an earlier export, which is replaced; empty is
    `<paths.outputs>/<name>/export/<target>-<quantization>`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig(Group):
    """Where `serve` listens, which models it offers, and how much it accepts."""

    host: str = "127.0.0.1"
    """Address to listen on. By default only programs on this machine reach the server."""
    port: Annotated[int, within(at_least=0, at_most=65_535)] = 5000
    """Port to listen on; 0 is any free one, which the first line of output names."""
    models: list[str] = field(default_factory=list)
    """Models to serve, the default one first, each NAME:FOLDER or FOLDER (a run, a checkpoint or an export for
    CTranslate2, as in docs/reference.md); empty is the model that `name`, `checkpoint` and `engine` choose."""
    key_file: str = ""
    """File with the API keys that are accepted, one per line; empty asks for none."""
    origins: list[str] = field(default_factory=list)
    """Origins of web pages, such as https://example.org, that may use the server from a browser, besides the server's
    own page (CORS); [*] is every page."""
    hosts: list[str] = field(default_factory=list)
    """Names by which clients may call the server; empty is any name, or localhost only if the server listens on this
    machine and asks for no key."""
    max_bytes: Annotated[int, within(at_least=1, at_most=100_000_000)] = 200_000
    """Largest request in bytes."""
    timeout: Annotated[float, within(at_least=0.1, at_most=3600)] = 60.0
    """Most seconds for an answer."""

    def _check(self) -> None:
        for origin in self.origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ConfigError(
                    f"serve.origins={origin} must be an origin in lower case, without a path, "
                    "such as https://example.org or http://localhost:8080, or *"
                )
        names = [name for name, _ in self.named_folders]
        for name in names:
            check_plain_name("serve.models", name)
            if names.count(name) > 1:
                raise ConfigError(f"serve.models has two models with the name {name}: give them names, as NAME:FOLDER")

    @property
    def named_folders(self) -> list[tuple[str, str]]:
        """The name and the folder of each model of `models`; without a name, the folder's own."""
        return [_named_folder(entry) for entry in self.models]


def _named_folder(entry: str) -> tuple[str, str]:
    name, colon, folder = entry.partition(":")
    if colon and "/" not in name and not is_address(entry):
        return name, folder
    return entry.rstrip("/").rpartition("/")[2], entry


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizeConfig(Group):
    """What `synthesize` writes."""

    shard_lines: Annotated[int, within(at_least=1, at_most=10_000_000)] = 5000
    """Lines per file; after an interruption, only files that are not complete are translated again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherConfig(Group):
    """A model of others, which `synthesize` asks for translations in place of the run."""

    model: str = ""
    """Name of the model at `teacher.url`; without an address, the folder of a model for transformers or CTranslate2."""
    url: str = ""
    """Address of an API like OpenAI's for chats, such as http://localhost:8000/v1. A key is read from the environment
    variable NMT_TEACHER_KEY only."""
    prompt: str = (
        "Translate this {source} sentence into {target}. Answer with nothing but the translation, on one line: no "
        "comments, no quotation marks around it.\n\n{text}"
    )
    """What is asked. {source} and {target} are the names of the languages, {text} is the sentence; the terms of
    decoding.terms are put before it."""
    examples: str = ""
    """File with a sentence, a tab and its translation per line: at most five, which are shown to the teacher."""
    requests: Annotated[int, within(at_least=1, at_most=1000)] = 16
    """Requests that are sent simultaneously."""
    price: list[str] = field(default_factory=list)
    """Price of a million tokens: of prompts, and of answers if it differs, such as [0.15,0.6]."""
    budget: Amount = 0.0
    """Stop before the answers cost more than this, in the currency of the price; 0 for no limit."""

    def _check(self) -> None:
        """Refuse values that contradict each other."""
        if self.url and not _ENDPOINT.fullmatch(self.url):  # without a name and a password, which files would keep
            raise ConfigError("teacher.url must be http://HOST/PATH or https://HOST/PATH: a key is read from the "
                              "environment variable NMT_TEACHER_KEY")  # fmt: skip
        if self.url and not self.model:
            raise ConfigError("teacher.url needs the name of a model there: set teacher.model")
        if "{text}" not in self.prompt:
            raise ConfigError("teacher.prompt must contain {text}, in place of which the sentence is put")
        if len(self.price) > 2 or not all(re.fullmatch(r"\d+(\.\d+)?(e-\d+)?", each) for each in self.price):
            raise ConfigError(f"teacher.price=[{','.join(self.price)}] must be one or two numbers, such as [0.15,0.6]")
        if self.budget and not self.price:
            raise ConfigError("teacher.budget needs teacher.price, the price of a million tokens")

    def cost(self, prompt_tokens: int, answer_tokens: int) -> float:
        """Return what these tokens cost."""
        prices = list(map(float, self.price)) or [0.0]
        return (prompt_tokens * prices[0] + answer_tokens * prices[-1]) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Table3Config(Group):
    """The rows of the paper's Table 3 that `table3` trains."""

    rows: list[str] = field(default_factory=list)
    """Rows to train and score (base, a1, ..., big); empty is all."""
    scale: Annotated[str, one_of("full", "multi30k", "small")] = "full"
    """full (as in the paper), multi30k (every row in the same proportions, on Multi30k) or small (on the demo corpus,
    in minutes)."""
    seeds: Annotated[int, within(at_least=1, at_most=100)] = 1
    """Number of seeds with which each row is trained, from `seed` on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingConfig(Group):
    """Experiment trackers; the run always writes its own metrics.jsonl."""

    wandb: Annotated[str, one_of("disabled", "offline", "online")] = "disabled"
    """Weights & Biases: disabled, offline (needs no account) or online."""
    tensorboard: bool = False
    """Write TensorBoard curves into the run's folder; needs the package tensorboard."""
