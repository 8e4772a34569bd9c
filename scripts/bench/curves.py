"""Learning curves beside each other: the same batches, the same schedule, the development loss after as many tokens."""

import argparse
import json
from pathlib import Path
from typing import Any

from corpus import open_corpus, shape_overrides
from engines import ENGINES, Bench
from tables import table

CURVES = ("ours", "huggingface")


def measure(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Train each engine for as many updates, and print the losses."""
    schedule = [
        f"training.schedule={options.schedule}",
        f"training.learning_rate={options.rate}",
        f"training.warmup_steps={options.warmup_steps}",
        f"training.steps={options.updates}",
    ]
    words = [*options.overrides, *shape_overrides(options.shape, options.batch_tokens), *schedule]
    corpus = open_corpus(words, bench.threads)
    found = {}
    for name in options.engines:
        for precision in options.precisions:
            job = corpus.job("curve", precision, Path(), updates=options.updates, every=options.every)
            found[f"{ENGINES[name].title} {precision}"] = bench.run(name, with_ours(name, job, options.ours))
    print(f"\nLoss of the development set a target token, {options.shape}, {options.batch_tokens:,} tokens a batch\n")
    print(render(found))
    if options.chart:
        _draw(found, options.chart)
    return {"curves": found}


def with_ours(name: str, job: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """The job, and settings that are for this project alone."""
    return {**job, "overrides": [*job["overrides"], *settings]} if name == "ours" else job


def render(found: dict[str, Any]) -> str:
    """A row for each look, a column for each curve."""
    curves = {name: result["points"] for name, result in found.items() if "refused" not in result}
    lines = [f"{name}: {result['refused']}" for name, result in found.items() if "refused" in result]
    if not curves:
        return "\n".join(lines)
    rows = [
        [f"{looks[0]['tokens']:,}", f"{looks[0]['updates']:,}", *(f"{look['loss']:.4f}" for look in looks)]
        for looks in zip(*curves.values(), strict=False)
    ]
    seconds = [f"{points[-1]['seconds']:,.0f} s" for points in curves.values()]
    return "\n".join([table(("tokens", "updates", *curves), [*rows, ["time of the updates", "", *seconds]]), *lines])


def _draw(found: dict[str, Any], path: Path) -> None:
    """Draw the curves as an SVG."""
    import vl_convert  # noqa: PLC0415 - heavy, and for the chart alone

    values = [{"engine": name, **point} for name, result in found.items() for point in result.get("points", ())]
    chart = {
        "data": {"values": values},
        "width": 640,
        "height": 360,
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "tokens", "type": "quantitative", "title": "source and target tokens trained on"},
            "y": {"field": "loss", "type": "quantitative", "title": "development loss", "scale": {"zero": False}},
            "color": {"field": "engine", "type": "nominal", "title": None},
        },
    }
    path.write_text(vl_convert.vegalite_to_svg(json.dumps(chart)), encoding="utf-8")
