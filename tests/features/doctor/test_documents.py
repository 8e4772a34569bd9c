"""The lines of README and docs that a result would replace exist, and have its figures."""

from pathlib import Path
from typing import Any

import pytest

from nmt.estimate.operation import Part
from nmt.features.doctor.documents import lines
from nmt.features.doctor.page import as_html

ROOT = Path(__file__).parents[3]


@pytest.fixture
def report() -> dict[str, Any]:
    speeds = [
        {"name": name, "compiled": False, "milliseconds": milliseconds, "tokens_per_second": 5e7 / milliseconds}
        | {"share_of_peak": 0.314, "memory": 9_250_000_000}
        for name, milliseconds in (("base", 31.25), ("big", 80.0))
    ]
    step = {"compiled": False, "seconds": dict(zip(Part, (0.006, 0.007, 0.015, 0.001), strict=True))}
    runs = [{"name": "base", "devices": count, "tokens_per_second": 1.5e6 * count} for count in (1, 8)]
    links = {"devices": 8, "sums_are_exact": True, "correct": True}
    sections: dict[str, list[dict[str, Any]]] = {
        "trials of fast operations": [{"name": "CUDA graphs", "failure": "RuntimeError: <no>"}],
        "training speed": speeds,
        "a run on one device": runs[:1],
        "several devices": [links, runs[1]],
    }
    return {
        "device": {"name": "A <Card>", "count": 8},
        "steps": [{"model": model, **step} for model in ("base", "big")],
        "sections": {name: {"seconds": 1.0, "error": None, "results": each} for name, each in sections.items()},
    }


def test_each_line_begins_as_one_of_its_document_does(report: dict[str, Any]) -> None:
    found = lines(report)
    assert len(found) == 4
    for line in found:
        there = (ROOT / line.document).read_text(encoding="utf-8").splitlines()
        assert [each for each in there if each.startswith(line.old)], line


def test_the_lines_have_the_figures(report: dict[str, Any]) -> None:
    links, several, base, _ = (line.new for line in lines(report))
    assert several.startswith("base trains at 12,000,000 tokens per second on 8 x A <Card>, measured by")
    assert links == "8 x A <Card> compute the same loss and gradient as one."
    assert base == "| A <Card> | base | 31.25 | 1,600,000 | 31% | 9.2 | 6.0 | 7.0 | 15.0 | 1.0 |"


def test_a_report_without_results_replaces_nothing(report: dict[str, Any]) -> None:
    assert lines({"device": report["device"], "steps": [], "sections": {}}) == []


def test_the_page_escapes_names_and_marks_what_is_wrong(report: dict[str, Any]) -> None:
    report["sections"]["training speed"]["error"] = "no <time> left"
    page = as_html(report, lines(report))
    assert "<h1>A &lt;Card&gt;</h1>" in page
    assert '<p class="wrong">failed: no &lt;time&gt; left</p>' in page
    assert '<tr class="wrong"><td>CUDA graphs</td>' in page
    assert page.count("<table>") == page.count("</table>")
