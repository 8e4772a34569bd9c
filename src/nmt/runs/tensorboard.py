"""Write the events of a run for TensorBoard, if the settings ask for it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.runs.layout import RunLayout


class Board:
    """Writes events to the run's folder for TensorBoard; a resumed run adds a file."""

    def __init__(self, run_folder: Path, step: int) -> None:
        """Open a file; events of steps after `step` are hidden because a resumed run writes them again."""
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (slow to import, and optional)
        except ModuleNotFoundError as error:
            raise UserError(
                "tracking.tensorboard=true needs the package tensorboard: .venv/bin/python -m pip install tensorboard"
            ) from error
        self._writer: Any = SummaryWriter(str(RunLayout(run_folder).tensorboard), purge_step=step + 1)

    def log(self, event: str, step: int, fields: Mapping[str, Any]) -> None:
        """Write the numbers of an event immediately."""
        for key, value in fields.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(f"{event}/{key}", value, step)
        self._writer.flush()

    def table(self, name: str, step: int, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table of text, as Markdown."""
        lines = [columns, ["---"] * len(columns), *([_cell(text) for text in row] for row in rows)]
        self._writer.add_text(name, "\n".join(f"| {' | '.join(line)} |" for line in lines), step)

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
