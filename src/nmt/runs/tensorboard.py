"""Write the events of a run for TensorBoard."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt.packages import import_optional
from nmt.runs.listener import Listener, Scored


class Board(Listener):
    """Writes events to the run's folder for TensorBoard; a resumed run adds a file."""

    service = "TensorBoard"

    def __init__(self, run_folder: Path, step: int | None) -> None:
        """Open a file; if training goes on after `step`, later events are hidden because it writes them again."""
        import_optional("tensorboard")
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (slow to import, and optional)

        self._writer: Any = SummaryWriter(
            str(run_folder / "tensorboard"), purge_step=None if step is None else step + 1
        )

    def log(self, event: str, step: int, fields: Mapping[str, Any]) -> None:
        """Write the numbers of an event immediately."""
        for key, value in fields.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(f"{event}/{key}", value, step)
        self._writer.flush()

    def log_scores(self, scored: Scored) -> None:
        """Write the scores, and the translations as a table."""
        self.log(scored.split, scored.step, scored.scores)
        table = _table(("source", "translation", "reference"), scored.translations)
        self._writer.add_text(f"{scored.split}/translations", table, scored.step)

    def close(self, exit_code: int) -> None:
        """Close the file."""
        with suppress(Exception):  # every event was flushed
            self._writer.close()


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of text as Markdown."""
    lines = [columns, ["---"] * len(columns), *([_cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
