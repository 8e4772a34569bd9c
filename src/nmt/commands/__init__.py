"""The words of the command line: `COMMANDS` lists them, and each module here is one of them.

A new command is a module with a function `run(config)`, and an entry in `COMMANDS`: help, completion and documentation
checks read it there. The modules are imported only when they run, because torch and Hydra are slow to import.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """One word of the command line."""

    module: str
    """Module whose `run(config)` is the command."""
    summary: str
    """One line of help."""
    settings: tuple[str, ...]
    """Groups and single settings that the command reads; its help and completion list them."""
    defaults: tuple[str, ...] = ()
    """Overrides that come before the user's, so the user's win."""
    composes: bool = False
    """True if `run` takes the overrides instead of one Config, because it composes several runs from them."""
    trains: bool = False
    """True if it trains runs, which a sweep over settings of the machine must not mix."""
    distributed: bool = False
    """True if all processes of torchrun take part; any other command runs on the first process only."""


_COMMON = ("name", "seed", "paths", "runtime")
COMMANDS = {
    "data": Command("nmt.commands.data", "fetch, filter and tokenise a corpus", ("data", "tokenizer", *_COMMON)),
    "train": Command(
        "nmt.commands.train",
        "train a model, or resume training",
        ("model", "training", "noise", "tracking", *_COMMON),
        trains=True,
        distributed=True,
    ),
    "batch": Command(
        "nmt.commands.batch",
        "print the sentences of one training step",
        ("batch", "training.batch_tokens", "noise", *_COMMON),
    ),
    "average": Command("nmt.commands.average", "average checkpoints", ("averaging", *_COMMON)),
    "eval": Command(
        "nmt.commands.evaluate",
        "translate and score",
        ("checkpoint", "engine", "evaluation", "decoding", "tracking", *_COMMON),
        distributed=True,
    ),
    "translate": Command(
        "nmt.commands.translate",
        "translate a file or standard input",
        ("checkpoint", "engine", "input", "output", "translate", "decoding", *_COMMON),
    ),
    "serve": Command(
        "nmt.commands.serve",
        "answer translation requests over HTTP",
        ("checkpoint", "engine", "serve", "decoding", *_COMMON),
    ),
    "synthesize": Command(
        "nmt.commands.synthesize",
        "translate a file of any size into a corpus, which later runs train on",
        ("checkpoint", "engine", "input", "synthesize", "decoding", *_COMMON),
        distributed=True,
    ),
    "parse": Command(
        "nmt.commands.parse",
        "print the constituency trees of sentences",
        ("checkpoint", "engine", "input", "output", "parse", "decoding", *_COMMON),
    ),
    "score": Command(
        "nmt.commands.score",
        "score given translations",
        ("checkpoint", "engine", "input", "output", "decoding", *_COMMON),
    ),
    "export": Command(
        "nmt.commands.export",
        "convert a trained model to the format of other programs",
        ("checkpoint", "export", "input", "decoding", *_COMMON),
    ),
    "import": Command(
        "nmt.commands.import_model",
        "make a run of a model in Hugging Face's Marian format, or of an export",
        ("source", "importing", "name", "paths"),
        defaults=("name='${folder_name:${source}}'",),
    ),
    "report": Command(
        "nmt.commands.report",
        "write an HTML page about one run or several",
        ("compare", "checkpoint", "engine", "output", *_COMMON),
    ),
    "compare": Command("nmt.commands.compare", "print how runs differ", ("compare", "checkpoint", "engine", "paths")),
    "attention": Command(
        "nmt.commands.attention",
        "draw the attention weights of a sentence as a PNG",
        ("attention", "checkpoint", "input", "output", "decoding", *_COMMON),
    ),
    "demo": Command(
        "nmt.commands.demo",
        "run data, train, average, eval and report on text that needs no download",
        ("training", *_COMMON),
        defaults=("experiment=demo",),
        trains=True,
        distributed=True,
    ),
    "table3": Command(
        "nmt.commands.table3",
        "train and score the rows of the paper's Table 3",
        ("table3", "training", "paths", "runtime"),
        composes=True,
        distributed=True,
    ),
    "tune": Command(
        "nmt.commands.tune",
        "measure the settings that make training fastest on this machine",
        ("tune", "model", "training.batch_tokens", "training.device_tokens", *_COMMON),
    ),
    "describe": Command(
        "nmt.commands.describe",
        "estimate the size, memory, time and cost of a run",
        ("describe", "output", "model", "training"),
    ),
}
"""Every command by its name on the command line, in the order of the help."""
