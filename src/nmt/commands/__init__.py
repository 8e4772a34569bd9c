"""The words of the command line: `COMMANDS` lists them, and each module here is one of them.

A new command is a module with a function `run(config)`, and an entry in `COMMANDS`: help and documentation checks
read it there. The modules are imported only when they run, because torch and Hydra are slow to import.
"""

from nmt.discovery import features
from nmt.feature import COMMON, Command

_CORE = {
    "data": Command(
        "nmt.commands.data",
        "fetch, filter and tokenise a corpus",
        ("data", "tokenizer", "own", *COMMON),
        owns="corpus",
        weights="none",
    ),
    "train": Command(
        "nmt.commands.train",
        "train a model, or resume training",
        ("model", "training", "noise", "own", "sweep", "tracking", *COMMON),
        trains=True,
        distributed=True,
        owns="run",
        weights="newest",
    ),
    "batch": Command(
        "nmt.commands.batch",
        "print the sentences of one training step",
        ("batch", "training.batch_tokens", "noise", "own", *COMMON),
        weights="none",
    ),
    "average": Command("nmt.commands.average", "average checkpoints", ("averaging", *COMMON), weights="all"),
    "eval": Command(
        "nmt.commands.evaluate",
        "translate and score",
        ("checkpoint", "engine", "evaluation", "decoding", "tracking", *COMMON),
        distributed=True,
    ),
    "all": Command(
        "nmt.commands.chain",
        "run data, train, average and eval, and then the report",
        (
            "data",
            "tokenizer",
            "model",
            "training",
            "noise",
            "own",
            "averaging",
            "checkpoint",
            "engine",
            "evaluation",
            "decoding",
            "sweep",
            "tracking",
            *COMMON,
        ),
        trains=True,
        distributed=True,
        corpus=False,  # its commands have needs of their own
        weights="none",
    ),
    "translate": Command(
        "nmt.commands.translate",
        "translate a file or standard input",
        ("checkpoint", "engine", "input", "output", "translate", "decoding", *COMMON),
        corpus=False,
    ),
    "score": Command(
        "nmt.commands.score",
        "score given translations",
        ("checkpoint", "engine", "input", "output", "decoding", *COMMON),
        corpus=False,
    ),
    "describe": Command(
        "nmt.commands.describe",
        "estimate the size, memory, time and cost of a run",
        ("describe", "output", "model", "training"),
        corpus=False,
        weights="none",
    ),
}


COMMANDS = _CORE | {name: command for feature in features().values() for name, command in feature.commands.items()}
"""Every command by its name on the command line, in the order of the help."""
