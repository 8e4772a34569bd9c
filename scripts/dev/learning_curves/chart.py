"""Print and draw the BLEU that runs have reached, by their text and their operations."""

import json
from collections.abc import Sequence
from pathlib import Path

from nmt.features.forecast.similar_runs import MadeRun, made_runs
from nmt.storage.files import write_text

LEAST_BLEU = 1.0
"""Runs with less have not begun to translate, and are left out."""


def draw(path: Path) -> None:
    """Print a table, and draw the same as SVG."""
    import vl_convert  # noqa: PLC0415 - slow to import, and only needed here

    runs = sorted((each for each in made_runs() if each.bleu >= LEAST_BLEU), key=lambda each: (_text(each), each.flops))
    print(_table(runs))
    write_text(path, vl_convert.vegalite_to_svg(json.dumps(_drawing(runs))))


def _text(run: MadeRun) -> str:
    """Return the text of a run in words."""
    return f"{run.text.capitalize()}, {run.pairs:,} pairs"


def _table(runs: Sequence[MadeRun]) -> str:
    """Return the runs as Markdown."""
    lines = ["| text | d_model | steps | FLOPs | BLEU | of | time |", "|---|---|---|---|---|---|---|"]
    for run in runs:
        work = f"{run.steps:,} of {run.batch_tokens:,} tokens | {run.flops:.1e}"
        lines.append(f"| {_text(run)} | {run.d_model} | {work} | {run.bleu:.1f} | {run.split} | {run.minutes} |")
    return "\n".join(lines)


def _drawing(runs: Sequence[MadeRun]) -> dict[str, object]:
    """Return the chart for Vega-Lite."""
    values = [{"text": _text(run), "flops": run.flops, "bleu": run.bleu, "split": run.split} for run in runs]
    return {
        "data": {"values": values},
        "width": 560,
        "height": 340,
        "mark": {"type": "point", "filled": True, "size": 70},
        "encoding": {
            "x": {
                "field": "flops", "type": "quantitative", "title": "floating-point operations of training",
                "scale": {"type": "log"}, "axis": {"format": ".0e", "values": [1e12, 1e13, 1e14, 1e15]},
            },
            "y": {"field": "bleu", "type": "quantitative", "title": "BLEU"},
            "color": {"field": "text", "type": "nominal", "title": None},
            "shape": {"field": "split", "type": "nominal", "title": "text that is scored"},
        },
    }  # fmt: skip
