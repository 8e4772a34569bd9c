"""The words of the command line: `COMMANDS` lists them, and each module here is one of them.

A new command is a module with a function `run(config)`, and an entry in `COMMANDS`: help and documentation checks
read it there. The modules are imported only when they run, because torch and Hydra are slow to import.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """One word of the command line."""

    module: str
    """Module whose `run(config)` is the command."""
    summary: str
    """One line of help."""
    settings: tuple[str, ...]
    """Groups and single settings that the command reads; its help lists them."""
    defaults: tuple[str, ...] = ()
    """Overrides that come before the user's, so the user's win."""
    composes: bool = False
    """True if `run` takes the overrides instead of one Config, because it composes several runs from them."""
    distributed: bool = False
    """True if all processes of torchrun take part; any other command runs on the first process only."""
    prepares: bool = False
    """True if it changes the prepared corpus, for which it may fetch text; other commands only read it."""
    copies: tuple[str, ...] = ("corpus", "run")
    """What is fetched first if paths.data or paths.outputs is an address."""


COMMON = ("name", "seed", "paths", "runtime")
"""Settings that nearly every command reads."""
MAIN_SETTINGS = (
    *("name", "seed", "checkpoint", "engine", "paths.data", "paths.outputs"),
    *("runtime.device", "runtime.precision"),
    *("data.corpus", "data.source", "data.source_lang", "data.target_lang", "data.train", "data.valid", "data.test"),
    *("data.hold_out", "tokenizer.vocab_size", "tokenizer.joint", "own.minutes"),
    *("model.layers", "model.d_model", "model.d_ff", "model.heads", "model.dropout", "model.positions"),
    *("training.steps", "training.batch_tokens", "training.device_tokens", "training.warmup_steps"),
    *("training.learning_rate", "training.label_smoothing", "training.optimizer", "training.schedule"),
    *("training.weight_decay", "training.valid_every", "training.save_every", "training.keep_last"),
    *("training.max_training_minutes", "training.init_from"),
    *("averaging.last", "evaluation.splits", "decoding.beam", "decoding.alpha", "decoding.strategy", "tracking.wandb"),
)
"""Settings that people turn, which the help of a command with many settings describes."""
SEARCH = ("checkpoint", "engine", "decoding", *COMMON)
"""Settings that commands read which translate."""
LEARNING = ("model", "training", "noise", "own", "tracking")
"""Settings that commands read which train."""

COMMANDS = {
    "data": Command(
        "nmt.commands.data",
        "fetch, filter and tokenise a corpus",
        ("data", "tokenizer", "own", *COMMON),
        prepares=True,
        copies=("corpus",),
    ),
    "train": Command("nmt.commands.train", "train a model, or resume training", (*LEARNING, *COMMON), distributed=True),
    "average": Command("nmt.commands.average", "average checkpoints", ("averaging", *COMMON)),
    "eval": Command(
        "nmt.commands.evaluate", "translate and score", ("evaluation", "tracking", *SEARCH), distributed=True
    ),
    "all": Command(
        "nmt.commands.chain",
        "run data, train, average and eval, and then the report",
        ("data", "tokenizer", *LEARNING, "averaging", "evaluation", *SEARCH),
        distributed=True,
        prepares=True,
        copies=(),  # its commands have their own
    ),
    "translate": Command(
        "nmt.commands.translate",
        "translate a file or standard input",
        ("input", "output", "translate", *SEARCH),
        copies=("run",),
    ),
    "score": Command("nmt.commands.score", "score given translations", ("input", "output", *SEARCH), copies=("run",)),
    "describe": Command(
        "nmt.commands.describe",
        "estimate the size, memory and time of a run",
        ("describe", "output", "model", "training"),
        copies=(),
    ),
    "demo": Command(
        "nmt.demo.command",
        "run data, train, average, eval and report on text that needs no download",
        ("training", *COMMON),
        defaults=("experiment=demo",),
        distributed=True,
        copies=(),  # its commands have their own
    ),
    "doctor": Command(
        "nmt.commands.doctor",
        "say what this machine has, and which optional packages are missing",
        ("paths",),
        copies=(),
    ),
    "export": Command(
        "nmt.export.command", "convert a trained model to the format of other programs", ("export", "input", *SEARCH)
    ),
    "import": Command(
        "nmt.imports.command",
        "make a run of a Marian model of Hugging Face (opus-mt)",
        ("input", "name", "paths"),
        defaults=("name='${folder_name:${input}}'",),
        copies=("run",),
    ),
    "report": Command(
        "nmt.report.command",
        "write an HTML page about a run, or about how several differ",
        ("compare", "checkpoint", "engine", "output", *COMMON),
    ),
    "serve": Command(
        "nmt.serving.command", "answer translation requests over HTTP", ("serve", *SEARCH), copies=("run",)
    ),
    "synthesize": Command(
        "nmt.synthesis.command",
        "translate a file of any size into a corpus, which later runs train on",
        ("input", "output", "synthesize", "teacher", "data.engine", *SEARCH),
        distributed=True,
        copies=("run",),
    ),
    "table3": Command(
        "nmt.table3.command",
        "train and score the rows of the paper's Table 3",
        ("table3", "training", "paths", "runtime"),
        composes=True,
    ),
}
"""Every command by its name on the command line, in the order of the help."""
