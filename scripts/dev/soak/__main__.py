"""Train for hours with frequent validation and saving, and check that memory, files, speed and disk use stay constant.

    .venv/bin/python scripts/dev/soak --minutes 120 --output soak.svg
    .venv/bin/python scripts/dev/soak --minutes 2 --every 2 training.valid_every=5

The samples are written to samples.jsonl and drawn as curves. The last quarter of the time is compared with the second;
the first is warm-up. Linux only.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import vl_convert

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared import processes
from shared.command_line import positive, run_tool, tool_parser

SETTINGS = (
    "experiment=demo", "model.d_model=64", "model.d_ff=128", "tokenizer.vocab_size=500", "name=soak",
    "training.steps=1000000000", "training.schedule=inverse_sqrt", "training.batch_tokens=1024",
    "training.log_every=10", "training.valid_every=20", "training.valid_sentences=20", "training.save_every=20",
    "training.keep_last=5", "runtime.device=cpu",
)  # fmt: skip
NMT = [sys.executable, "-m", "nmt"]
STOPPED = 128 + signal.SIGTERM


class Measure(NamedTuple):
    """A measured quantity, and how far it may change."""

    title: str
    unit: float
    """Divisor of the sampled values."""
    growth: float
    """Largest allowed ratio of the last quarter to the second."""
    shrinkage: float = 0.0
    """Smallest allowed ratio."""
    slack: float = 0.0
    """Absolute growth that is always allowed."""


MEASURES = {
    "memory": Measure("memory, MiB", 2**20, 1.05, slack=4),
    "handles": Measure("open files", 1, 1.0, slack=2),
    "threads": Measure("threads", 1, 1.0, slack=1),
    "disk": Measure("disk used by checkpoints, MiB", 2**20, 1.1),
    "tokens_per_second": Measure("tokens per second", 1, 1e9, shrinkage=0.9),
}


def main() -> int:
    """Train, sample and draw; return 1 if any measure changed too far."""
    arguments = _arguments()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="soak-"))
    settings = [*SETTINGS, *arguments.overrides, f"paths.data={folder}/data", f"paths.outputs={folder}/outputs"]
    subprocess.run([*NMT, "data", *settings], check=True, stdout=subprocess.DEVNULL)
    samples = _soak(folder, settings, arguments.minutes, arguments.every)
    verdicts = {name: _verdict(measure, _values(samples, name)) for name, measure in MEASURES.items()}
    output = Path(arguments.output)
    output.write_text(vl_convert.vegalite_to_svg(_drawing(samples)), encoding="utf-8")
    for name, (flat, words) in verdicts.items():
        print(f"{MEASURES[name].title:<30}{words}  {'flat' if flat else 'NOT FLAT'}")
    print(f"{len(samples)} samples in {folder / 'samples.jsonl'}, up to step {samples[-1]['step']}; drawn in {output}")
    return int(not all(flat for flat, _ in verdicts.values()))


def _arguments() -> argparse.Namespace:
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--minutes", type=positive, default=120, help="how long to train")
    parser.add_argument("--every", type=positive, default=10, help="seconds between samples")
    parser.add_argument("--folder", help="folder of the data and the run; by default a temporary folder")
    parser.add_argument("--output", default="soak.svg", help="file of the drawing")
    parser.add_argument("overrides", nargs="*", help="settings, such as training.save_every=5")
    return parser.parse_args()


def _soak(folder: Path, settings: Sequence[str], minutes: float, every: float) -> list[dict[str, Any]]:
    """Train in another process, sample it meanwhile, and stop it with SIGTERM when the time is over."""
    run, samples = folder / "outputs" / "soak", []
    with (folder / "train.log").open("w") as log, (folder / "samples.jsonl").open("w", buffering=1) as file:
        process = subprocess.Popen([*NMT, "train", *settings], stdout=log, stderr=subprocess.STDOUT)
        started = time.monotonic()
        try:
            while process.poll() is None and time.monotonic() < started + 60 * minutes:
                time.sleep(every)
                if sample := _sample(process.pid, run):
                    samples.append({"seconds": time.monotonic() - started, **sample})
                    file.write(json.dumps(samples[-1]) + "\n")
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait()
    if process.returncode != STOPPED or len(samples) < 8:
        raise SystemExit(f"soak: training ended with code {process.returncode}: see {folder / 'train.log'}")
    return samples


def _sample(pid: int, run: Path) -> dict[str, float] | None:
    """Return what a process uses now; None if it has not logged anything yet, or has just ended."""
    try:
        events = [json.loads(line) for line in _tail(run / "metrics.jsonl") if '"tokens_per_second"' in line]
        return {
            "step": events[-1]["step"],
            "memory": processes.memory(pid),
            "handles": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
            "threads": int(processes.status(pid)["Threads"]),
            "disk": sum(path.lstat().st_size for path in (run / "checkpoints").rglob("*") if path.exists()),
            "tokens_per_second": median(event["tokens_per_second"] for event in events),
        }
    except (OSError, KeyError, IndexError):
        return None


def _tail(path: Path) -> list[str]:
    """Return the last complete lines of a file."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        return file.read().decode(errors="replace").split("\n")[1:-1]


def _values(samples: Sequence[dict[str, Any]], name: str) -> list[float]:
    return [sample[name] / MEASURES[name].unit for sample in samples]


def _verdict(measure: Measure, values: Sequence[float]) -> tuple[bool, str]:
    """Return whether the last quarter is within the limits of the second, and both as text."""
    quarter = len(values) // 4
    second, last = median(values[quarter : 2 * quarter]), median(values[-quarter:])
    flat = measure.shrinkage * second <= last <= max(measure.growth * second, second + measure.slack)
    return flat, f"{second:12,.1f} -> {last:12,.1f} ({last / second - 1:+.1%})"


def _drawing(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a Vega-Lite chart with one curve per measure."""
    charts = [
        {
            "width": 640,
            "height": 90,
            "data": {
                "values": [
                    {"hours": sample["seconds"] / 3600, "value": value}
                    for sample, value in zip(samples, _values(samples, name), strict=True)
                ]
            },
            "mark": "line",
            "encoding": {
                "x": {"field": "hours", "type": "quantitative", "title": "hours"},
                "y": {"field": "value", "type": "quantitative", "title": None, "scale": {"zero": True}},
            },
            "title": {"text": measure.title, "anchor": "start"},
        }
        for name, measure in MEASURES.items()
    ]
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "vconcat": charts}


if __name__ == "__main__":
    run_tool(main, __file__)
