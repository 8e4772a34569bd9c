"""Constituency trees (section 6.3 of the paper): a task, from bracketed files to scores and drawings."""

from nmt.feature import COMMON, Command, Feature

FEATURE = Feature(
    summary="constituency trees of sentences as the target side, and a search among well-formed ones",
    commands={
        "parse": Command(
            "nmt.features.trees.parse",
            "print the constituency trees of sentences",
            ("checkpoint", "engine", "input", "output", "parse", "decoding", *COMMON),
        ),
    },
    sections=("nmt.features.trees.section:drawn_trees",),
    metrics={
        "bracket_f1": "nmt.features.trees.metrics:F1",
        "bracket_precision": "nmt.features.trees.metrics:PRECISION",
        "bracket_recall": "nmt.features.trees.metrics:RECALL",
        "complete_match": "nmt.features.trees.metrics:COMPLETE_MATCH",
    },
    findings={"repairs": "nmt.features.trees.repairs:REPAIRS"},
)
