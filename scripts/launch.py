#!/usr/bin/env python3
"""Run the command of a make target with the words of ARGS; ON_ALL_GPUS names those that run on all GPUs.

make passes ARGS in the environment. It is split here by the shell's quoting rules, and neither make nor a shell
expands it: `;`, `$(...)` and `${oc.env:HOME}` reach the command as they were written. Also usable without make:

    .venv/bin/python scripts/launch.py train experiment=multi30k
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

SCRIPTS = Path(__file__).resolve().parent
ON_ALL_GPUS = ("train", "eval", "synthesize")
USER_ERROR = 2
HELP = ("-h", "--help")
LEAST_TOKENS = 1024
"""Source tokens, and target tokens, that a GPU should get per step: with fewer, it waits for its host."""
PARALLEL = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
"""Options of pytest: one process per core, and the tests of a file in one process, because they share its fixtures.

Files start in the order of their names, so the slow ones of tests/integration come first. By default, files with few
tests would come last, and these are slow ones.
"""


def main() -> None:
    """Replace this process with the target's command."""
    if not sys.argv[1:]:
        refuse("name a target, such as train")
    target, *words = sys.argv[1:]
    try:
        words += split_words(os.environ.pop("ARGS", ""))
    except ValueError as error:
        refuse(f"ARGS cannot be split into words ({error}): close or escape the quotation mark")
    uses_gpus = target in ON_ALL_GPUS and not any(word in HELP for word in words)
    processes = gpu_count() if uses_gpus else 1
    if processes > 1:
        processes = useful_processes(target, words, processes)
    if processes > 1:
        check_settings(words)
    os.execv(sys.executable, [sys.executable, *command(target, words, processes)])


def refuse(message: str) -> NoReturn:
    """Print what the user has to change, and exit."""
    print(f"launch: {message}", file=sys.stderr)
    sys.exit(USER_ERROR)


def split_words(text: str) -> list[str]:
    """Split ARGS into words as a shell would, with nothing expanded."""
    return shlex.split(text.replace("\\\n", ""))


def command(target: str, words: Sequence[str], processes: int = 1) -> list[str]:
    """Return the arguments that Python takes for a target."""
    match target:
        case "test":
            return ["-m", "pytest", *PARALLEL, *words]
        case "test-all":
            return ["-m", "pytest", *PARALLEL, "-m", "", *words]
        case "bench":
            named = words and "=" not in words[0]
            return [str(SCRIPTS / "bench"), *(() if named else ["machine"]), *words]
    nmt = ["-m", "nmt", target, *words]
    if processes == 1:
        return nmt
    return [str(SCRIPTS / "torchrun"), "--standalone", f"--nproc-per-node={processes}", *nmt]


def useful_processes(target: str, words: Sequence[str], gpus: int) -> int:
    """Return how many processes to start: one on a CPU, and for a launcher that starts the run itself.

    Training starts no more than have `LEAST_TOKENS` of each batch.
    """
    from nmt.config.compose import compose  # noqa: PLC0415 - slow to import, and most targets do without it
    from nmt.config.conf_folder import adding_folder  # noqa: PLC0415
    from nmt.config.flags import parse  # noqa: PLC0415
    from nmt.config.multirun import first_run, split  # noqa: PLC0415
    from nmt.errors import UserError  # noqa: PLC0415

    try:
        line = parse(words)
        settings, launching = split(line.overrides)
        if line.shows or any("hydra/launcher=" in word and not word.endswith("=basic") for word in launching):
            return 1
        with adding_folder(line.flags.config_dir):
            config = compose(first_run(settings))
    except UserError:
        return gpus  # `check_settings`, or the run itself, reports it
    if config.runtime.device == "cpu":
        return 1
    tokens = config.training.batch_tokens
    useful = gpus if target != "train" else min(gpus, max(1, tokens // LEAST_TOKENS))
    if useful < gpus:
        print(
            f"launch: training on {useful} of {gpus} GPUs: training.batch_tokens={tokens} is too small for more, "
            f"which need {LEAST_TOKENS} each",
            file=sys.stderr,
        )
    return useful


def first_of_search(words: Sequence[str]) -> list[str]:
    """Return the words of the first run of a search, which needs results that `describe` does not have."""
    from nmt.config.flags import parse  # noqa: PLC0415 - slow to import, and most targets do without it
    from nmt.config.multirun import first_run, split  # noqa: PLC0415
    from nmt.errors import UserError  # noqa: PLC0415

    try:
        line = parse(words)
        if not (line.is_multirun and any(word.startswith("hydra/sweeper=") for word in line.overrides)):
            return [*words]
        folder = line.flags.config_dir
        return [*([f"--config-dir={folder}"] if folder else []), *first_run(split(line.overrides)[0])]
    except UserError:
        return [*words]  # `describe` reports it


def check_settings(words: Sequence[str]) -> None:
    """Exit if the settings are wrong, so that the mistake is reported once and not by every process."""
    check = [sys.executable, *command("describe", first_of_search(words))]
    if code := subprocess.run(check, stdout=subprocess.DEVNULL, check=False).returncode:
        sys.exit(code)


def gpu_count() -> int:
    """Return the number of GPUs that a run may use, at least 1 because a CPU run is one process.

    PyTorch counts NVIDIA's and AMD's GPUs without using them, and leaves out those that CUDA_VISIBLE_DEVICES or
    HIP_VISIBLE_DEVICES hides. Its import takes about two seconds, so other targets do without it.
    """
    import torch  # noqa: PLC0415

    return max(1, torch.cuda.device_count())


if __name__ == "__main__":
    main()
