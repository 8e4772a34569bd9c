"""HTML pages about a run, and comparisons of runs."""

from nmt.feature import COMMON, Command, Feature

FEATURE = Feature(
    summary="pages about a run and comparisons of runs",
    commands={
        "report": Command(
            "nmt.report.command",
            "write an HTML page about a run, or about how several differ",
            ("compare", "checkpoint", "engine", "output", *COMMON),
            ends_chain=True,
        ),
    },
)
