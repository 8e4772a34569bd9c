"""Lines of README and docs that the results of a GPU would replace or add."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt.estimate.measured import STEPS
from nmt.estimate.operation import Part

COMMAND = 'make doctor ARGS="doctor.gpu=true"'
PARTS = (Part.FORWARD, Part.LOSS, Part.BACKWARD, Part.OPTIMIZER)
"""The last columns of the table of measured steps."""


class Line(NamedTuple):
    """A line of a document."""

    document: str
    old: str
    """How the line begins that it replaces, or that it follows."""
    new: str


def lines(report: dict[str, Any]) -> list[Line]:
    """Return the lines that a report has the figures for."""
    return [*_several_devices(report), *_steps(report)]


def _several_devices(report: dict[str, Any]) -> Iterator[Line]:
    name = report["device"]["name"]
    for each in _results(report, "several devices"):
        if "tokens_per_second" in each:
            speed = f"{each['tokens_per_second']:,.0f} tokens per second on {each['devices']} x {name}"
            new = f"{each['name']} trains at {speed}, measured by `{COMMAND}`."
            yield Line("README.md", "**Training on several GPUs, which uses NCCL, has not been run yet**", new)
        if "sums_are_exact" in each:
            agree = "the same loss and gradient as" if each["correct"] else "**another loss or gradient than**"
            text = f"{each['devices']} x {name} compute {agree} one."
            yield Line("docs/cluster.md", "**Several GPUs and NCCL have not been run yet**", text)


def _steps(report: dict[str, Any]) -> Iterator[Line]:
    """Yield the rows of the table of measured steps, which follow those of another device."""
    parts = {each["model"]: each["seconds"] for each in report[STEPS] if not each["compiled"]}
    for each in _results(report, "training speed"):
        if "tokens_per_second" not in each or each["compiled"] or each["name"] not in parts:
            continue
        row = [
            report["device"]["name"],
            each["name"],
            f"{each['milliseconds']:.2f}",
            f"{each['tokens_per_second']:,.0f}",
            f"{each['share_of_peak']:.0%}",
            f"{each['memory'] / 1e9:.1f}",
            *(f"{1000 * parts[each['name']][part]:.1f}" for part in PARTS),
        ]
        yield Line("docs/results.md", "| NVIDIA H200 | big |", f"| {' | '.join(row)} |")


def _results(report: dict[str, Any], section: str) -> list[dict[str, Any]]:
    """Return the results of a section; none if it did not run."""
    found: list[dict[str, Any]] = report["sections"].get(section, {}).get("results", [])
    return found
