"""HTML pages about a run, comparisons of runs, and drawings of attention."""

from nmt.feature import COMMON, Command, Feature, Group

FEATURE = Feature(
    summary="pages about a run and comparisons of runs, and drawings of attention",
    commands={
        "report": Command(
            "nmt.features.report.command",
            "write an HTML page about one run or several",
            ("compare", "checkpoint", "engine", "output", *COMMON),
            ends_chain=True,
        ),
        "compare": Command(
            "nmt.features.report.compare_command",
            "print how runs differ",
            ("compare", "checkpoint", "engine", "paths"),
            corpus="none",
            weights="none",
        ),
        "attention": Command(
            "nmt.features.report.attention_command",
            "draw the attention weights of a sentence as a PNG",
            ("attention", "checkpoint", "input", "output", "decoding", *COMMON),
        ),
    },
    settings={
        "attention": Group("nmt.features.report.settings:AttentionConfig"),
        "": Group("nmt.features.report.settings:ComparedRuns"),
    },
)
