"""Stages that run a whole chain: two rows of Table 3, and the demo."""

import json
import sys
from pathlib import Path

from test_all.environments import EXTRAS_PYTHON
from test_all.stages import Context, StageError

NMT = (sys.executable, "-m", "nmt")
FLOOR = 94.0
"""The lowest BLEU of the demo on each of its tests. Measured on average: 97.0 and 96.2."""
ROWS = ("base", "a1")


def run_table3(context: Context) -> None:
    """Train and score two rows at the smallest scale with few steps."""
    rows = f"table3.rows=[{','.join(ROWS)}]"
    quick = ("table3.base_steps=40", "decoding.beam=1", "decoding.extra_length=0")
    words = (*_places(context.folder), "table3.scale=small", rows, *quick)
    table = context.run(*NMT, "table3", *words, show=True)
    for row in ROWS:
        if not any(line.split()[:1] == [row] or f" {row} " in line for line in table.splitlines()):
            raise StageError(f"the table has no row {row}")


def run_demo(context: Context) -> None:
    """Run the whole demo, compare its BLEU with the floor, and export its model if the extras are installed."""
    context.run(*NMT, "demo", *_places(context.folder))
    for split in ("test", "unseen"):
        file = context.folder / "outputs" / "demo" / "eval" / f"{split}.json"
        check_floor(file, split)
        context.say(f"{split}: {bleu(file):.1f} BLEU")
    if EXTRAS_PYTHON.exists():
        for exports in ("export.quantization=float32,int8", "export=argos,onnx"):
            context.say(f"exports of its model: {exports}")
            words = ("-m", "experiment=demo", exports, *_places(context.folder))
            context.run(EXTRAS_PYTHON, "-m", "nmt", "export", *words)


def bleu(file: Path) -> float:
    """Return the BLEU in a file of scores."""
    found: float = json.loads(file.read_text(encoding="utf-8"))["bleu"]["score"]
    return found


def check_floor(file: Path, split: str) -> None:
    """Raise StageError if the BLEU in a file of scores is below the floor."""
    if bleu(file) < FLOOR:
        raise StageError(f"the demo has {bleu(file):.2f} BLEU on {split}, below {FLOOR}")


def _places(folder: Path) -> tuple[str, str]:
    return f"paths.data={folder}/data", f"paths.outputs={folder}/outputs"
