"""outputs/sweeps/<name of the sweep>/<values>.json: one run of a sweep, with its result or error."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.plain_names import settings_name
from nmt.config.swept_run import SweptRun
from nmt.errors import UserError
from nmt.runs.layout import SETTINGS
from nmt.storage.files import read_json, write_json

FOLDER = "sweeps"
"""The folder of the records in the folder of all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run of a sweep."""

    sweep: str
    """The name of the run that the values change."""
    number: int
    """Its place in the sweep."""
    values: Mapping[str, str]
    """Its values of the settings that have several."""
    run: str = ""
    """The name of its folder; empty if its settings are invalid."""
    metric: str = ""
    result: float | None = None
    error: str = ""
    """Why it has no result; empty if it has one."""

    @classmethod
    def from_json(cls, content: Any) -> "RunRecord":
        """Read the content of a file; raise KeyError, TypeError or ValueError if it is not a record."""
        values = {str(key): str(value) for key, value in content["values"].items()}
        result = content.get("result")
        texts = {key: str(content.get(key, "")) for key in ("run", "metric", "error")}
        return cls(
            sweep=str(content["sweep"]), number=int(content["number"]), values=values,
            result=None if result is None else float(result), **texts,
        )  # fmt: skip


def write_record(swept: SweptRun, **found: Any) -> None:
    """Write the record of a run; running the same values again replaces it."""
    record = RunRecord(sweep=swept.base.name, number=swept.number, values=dict(swept.values), **found)
    folder = Path(swept.outputs) / FOLDER / swept.base.name
    write_json(folder / f"{settings_name(swept.values)}.json", asdict(record))


class Sweep(NamedTuple):
    """The runs of a sweep."""

    metric: str
    """The metric of its newest record, as results of different metrics cannot be compared; empty if none has one."""
    records: list[RunRecord]
    """Runs that vary the same settings follow each other in their order; results are of the metric."""


def read_sweeps(outputs: Path) -> list[Sweep]:
    """Return all sweeps, without damaged records."""
    sweeps = (list(filter(None, map(_read, files))) for files in _files(outputs / FOLDER))
    return [_sweep(records) for records in sweeps if records]


def _sweep(oldest_first: list[RunRecord]) -> Sweep:
    metric = next((each.metric for each in reversed(oldest_first) if each.metric), "")
    records = [each if each.metric == metric else replace(each, result=None) for each in oldest_first]
    return Sweep(metric, sorted(records, key=lambda each: (sorted(each.values), each.number)))


def _files(folder: Path) -> Iterator[list[Path]]:
    """Yield the files of each sweep's records, the oldest first; a run whose name begins with `sweeps/` has none."""
    for path, folders, names in os.walk(folder):
        folders.sort()
        if SETTINGS in names:
            folders.clear()
        else:
            files = [Path(path, name) for name in sorted(names) if name.endswith(".json")]
            yield sorted(files, key=lambda file: file.stat().st_mtime)


def _read(file: Path) -> RunRecord | None:
    """Return a record; if it is damaged, say so and return None."""
    try:
        return RunRecord.from_json(read_json(file))
    except (UserError, KeyError, TypeError, ValueError, AttributeError):
        print(
            f"warning: {file} is not the record of a run and is left out: delete it, and run the sweep again",
            file=sys.stderr, flush=True,
        )  # fmt: skip
        return None
