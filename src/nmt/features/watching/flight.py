"""The last operations that processes did together, which PyTorch's flight recorder keeps."""

import faulthandler
import json
import os
from pathlib import Path
from typing import Any

import torch

from nmt.config.schema import Config
from nmt.features.watching.settings import WatchConfig
from nmt.launched import launched_processes
from nmt.storage.files import write_text
from nmt.training.preparation import Prepared

FOLDER = "flight"
"""The folder in that of the run."""
OPERATIONS = "2000"
"""The number of operations that are kept."""
RECORDERS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
"""Functions of PyTorch that return the operations: those of gloo, or of all; and in earlier versions those of NCCL."""


def prepare(config: Config) -> Prepared:
    """Turn on the flight recorder before the processes join, and let NCCL's watchdog write into the run's folder."""
    if config.of(WatchConfig).every and launched_processes() > 1:
        os.environ.setdefault("TORCH_FR_BUFFER_SIZE", OPERATIONS)
        if torch.cuda.is_available():
            folder = config.run_folder / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "1")
            os.environ.setdefault("TORCH_FR_DUMP_TEMP_FILE", str(folder / "nccl-rank-"))
    return Prepared(config)


def recorded() -> list[dict[str, Any]]:
    """Return the operations that this process has begun, the earliest first; none if PyTorch does not tell."""
    module = getattr(torch._C, "_distributed_c10d", None)
    entries: list[dict[str, Any]] = []
    for recorder in RECORDERS:
        if (function := getattr(module, recorder, None)) is not None:
            entries += json.loads(function(True)).get("entries", [])
    return sorted(entries, key=lambda each: int(each["time_created_ns"]))


def last_operation() -> tuple[int, str]:
    """Return how many operations this process has begun with the others, and the name of the last one."""
    entries = recorded()
    if not entries:
        return 0, ""
    return max(int(each["record_id"]) for each in entries) + 1, str(entries[-1]["profiling_name"])


def write_down(folder: Path, rank: int) -> None:
    """Write what this process does: its operations as JSON, and where each of its threads is."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / f"rank-{rank}.json", json.dumps(recorded(), indent=1) + "\n")
    with (folder / f"rank-{rank}.txt").open("w", encoding="utf-8") as stacks:
        faulthandler.dump_traceback(stacks)
