#!/usr/bin/env python3
"""Run the command of a make target with the words of ARGS; ON_ALL_GPUS names those that run on all GPUs.

make passes ARGS in the environment. It is split here by the shell's quoting rules, and neither make nor a shell
expands it: `;`, `$(...)` and `${oc.env:HOME}` reach the command as they were written. Also usable without make:

    .venv/bin/python scripts/launch.py train experiment=multi30k
"""

import logging
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

SCRIPTS = Path(__file__).resolve().parent
ON_ALL_GPUS = ("train", "eval", "synthesize")
USER_ERROR = 2
STOPPED = 143
"""Exit code of nmt after it was asked to stop and saved a checkpoint."""
HELP = ("-h", "--help")
PARALLEL = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
"""Options of pytest: one process per core, and the tests of a file in one process, because they share its fixtures.

Files start in the order of their names, so the slow ones of tests/integration come first. By default, files with few
tests would come last, and these are slow ones.
"""
FOR_TORCHRUN = {
    "PET_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "120",  # seconds in which the processes may save
}
"""Environment variables that torchrun reads, unless they are set."""


def main() -> None:
    """Replace this process with the target's command, or start the command once per GPU."""
    if not sys.argv[1:]:
        refuse("name a target, such as train")
    target, *words = sys.argv[1:]
    try:
        words += shlex.split(os.environ.pop("ARGS", "").replace("\\\n", ""))
    except ValueError as error:
        refuse(f"ARGS cannot be split into words ({error}): close or escape the quotation mark")
    uses_gpus = target in ON_ALL_GPUS and not any(word in HELP for word in words)
    if uses_gpus and (gpus := gpu_count()) > 1 and not is_one_process(words):
        sys.exit(run_together(gpus, target, words))
    os.execv(sys.executable, [sys.executable, *command(target, words)])


def refuse(message: str) -> NoReturn:
    """Print what the user has to change, and exit."""
    print(f"launch: {message}", file=sys.stderr)
    sys.exit(USER_ERROR)


def command(target: str, words: Sequence[str]) -> list[str]:
    """Return the arguments that Python takes for a target."""
    match target:
        case "test":
            return ["-m", "pytest", *PARALLEL, *words]
        case "test-all":
            return ["-m", "pytest", *PARALLEL, "-m", "", *words]
        case "bench":
            named = words and "=" not in words[0]
            return [str(SCRIPTS / "bench"), *(() if named else ["machine"]), *words]
    return ["-m", "nmt", target, *words]


def gpu_count() -> int:
    """Return the number of GPUs that PyTorch finds; its import takes two seconds, so few targets ask for it."""
    import torch  # noqa: PLC0415

    return int(torch.cuda.device_count())


def is_one_process(words: Sequence[str]) -> bool:
    """Return whether the command uses no GPU, or leaves its start to a launcher; exit if the settings are wrong."""
    from nmt.config.compose import compose, parse  # noqa: PLC0415 - slow to import, and most targets do without it
    from nmt.errors import UserError  # noqa: PLC0415

    try:
        line = parse(words)
        if any(re.search("--cfg|--info|hydra/launcher=(?!basic)", word) for word in line.of_hydra):
            return True
        return compose(line.single).runtime.device == "cpu"
    except UserError as error:
        refuse(str(error))


def run_together(processes: int, target: str, words: Sequence[str]) -> int:
    """Start processes with torchrun; return the exit code of the first that failed, which has said why."""
    os.environ.update({**FOR_TORCHRUN, **os.environ})
    logging.disable(logging.WARNING)  # such as a line for each process that torchrun ends after another has failed
    from torch.distributed.elastic.multiprocessing import SignalException  # noqa: PLC0415
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # noqa: PLC0415
    from torch.distributed.run import main as torchrun  # noqa: PLC0415

    try:
        torchrun(["--standalone", f"--nproc-per-node={processes}", *command(target, words)])
    except ChildFailedError as error:
        code = int(error.get_first_failure()[1].exitcode)
        return code if code >= 0 else 128 - code
    except SignalException:
        return STOPPED
    return 0


if __name__ == "__main__":
    main()
