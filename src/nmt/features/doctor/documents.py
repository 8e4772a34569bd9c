"""Lines of README and docs that the results of a GPU would replace."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt.compute.replaced import Fast
from nmt.estimate.measured import STEPS
from nmt.estimate.operation import Part

COMMAND = 'make doctor ARGS="doctor.gpu=true"'
STEP_ROWS = {
    "| forward |": (Part.FORWARD,),
    "| loss, with its gradients |": (Part.LOSS,),
    "| backward |": (Part.BACKWARD,),
    "| gradient norm |": (Part.OPTIMIZER,),
    "| all |": tuple(Part),
}
"""Rows of the table of a step in docs/results.md, and the parts of a step that each stands for."""

SINGLE_ROWS = {"base": ("| 1 | 27.22 |", 100_000), "big": ("| 1 | 75.62 |", 300_000)}
"""The estimates for one GPU, and the steps of these runs."""


class Line(NamedTuple):
    """A line of a document."""

    document: str
    old: str
    """How it begins."""
    new: str


def lines(report: dict[str, Any]) -> list[Line]:
    """Return the lines that a report has the figures for."""
    return [*_general(report), *_parts_of_steps(report), *_speeds(report), *_kernels(report)]


def _general(report: dict[str, Any]) -> Iterator[Line]:
    found = [each for name in ("a run on one device", "several devices") for each in _results(report, name)]
    runs = [each for each in found if "tokens_per_second" in each]
    speeds = ", ".join(f"{each['tokens_per_second']:,.0f} tokens per second on {each['devices']}" for each in runs)
    if speeds:
        device = report["device"]
        new = f"Measured on {device['count']} x {device['name']} by `{COMMAND}`: {runs[0]['name']} trains at {speeds}."
        yield Line("README.md", "**Training on several GPUs, which uses NCCL, has not been run yet**", new)
        yield Line("docs/scaling.md", "Nothing on this page was measured on a GPU.", new)
    for each in _results(report, "several devices"):
        if "sums_are_exact" in each:
            agree = "the same loss and gradient as" if each["correct"] else "**another loss or gradient than**"
            text = f"{each['devices']} x {report['device']['name']} compute {agree} one."
            yield Line("docs/cluster.md", "**Several GPUs and NCCL have not been run yet**", text)


def _parts_of_steps(report: dict[str, Any]) -> Iterator[Line]:
    """Yield the rows of the table of a step, with measured milliseconds in place of those by the data sheet."""
    steps = {each["model"]: each["seconds"] for each in report[STEPS] if not each["compiled"]}
    if not {"base", "big"} <= steps.keys():
        return
    for row, parts in STEP_ROWS.items():
        base, big = (1000 * sum(steps[model][part] for part in parts) for model in ("base", "big"))
        name = "| gradient norm and optimizer |" if parts == (Part.OPTIMIZER,) else row
        yield Line("docs/results.md", row, f"{name} | | | {base:.1f} | | | | {big:.1f} |")


def _speeds(report: dict[str, Any]) -> Iterator[Line]:
    """Yield the rows for one GPU of the tables of base and of big."""
    for each in _results(report, "training speed"):
        if "tokens_per_second" in each and not each["compiled"] and each["name"] in SINGLE_ROWS:
            old, steps = SINGLE_ROWS[each["name"]]
            milliseconds = each["milliseconds"]
            speed = f"{each['tokens_per_second']:,.0f} | {steps * milliseconds / 60_000:.1f}"
            yield Line("docs/scaling.md", old, f"| 1 | {milliseconds:.2f} | | 0.00 | 0.00 | {speed} |")


def _kernels(report: dict[str, Any]) -> Iterator[Line]:
    """Yield what is said about operations that no GPU had run yet."""
    for each in _results(report, "trials of fast operations"):
        if each["name"] == Fast.GRAPHS:
            outcome = f"fails a trial ({each['failure']})" if each["failure"] else "passes a trial"
            text = f"graphs, which {outcome} on {report['device']['name']}."
            yield Line("docs/cluster.md", "graphs, which **has not been run on a GPU yet**", text)
    for each in _results(report, "fastest settings"):
        if (each["setting"], each["candidate"]) == ("runtime.attention", "short") and each.get("ratio"):
            text = f"{report['device']['name']} trains {each['ratio']:.2f} times as fast with it."
            yield Line("docs/decisions.md", "sentences of about 31 tokens. It has not run on a GPU yet", text)


def _results(report: dict[str, Any], section: str) -> list[dict[str, Any]]:
    """Return the results of a section; none if it did not run."""
    found: list[dict[str, Any]] = report["sections"].get(section, {}).get("results", [])
    return found
