"""Constituency trees (section 6.3 of the paper): a task, from bracketed files to scores and drawings."""

from nmt.feature import COMMON, Choice, Command, Feature, Group

FEATURE = Feature(
    summary="constituency trees of sentences as the target side, and a search among well-formed ones",
    commands={
        "parse": Command(
            "nmt.features.trees.parse",
            "print the constituency trees of sentences",
            ("checkpoint", "engine", "input", "output", "parse", "decoding", *COMMON),
        ),
    },
    settings={
        "data": Group("nmt.features.trees.settings:TreeData"),
        "decoding": Group("nmt.features.trees.settings:TreeDecoding"),
        "parse": Group("nmt.features.trees.settings:ParseConfig"),
    },
    choices={
        "data.source": {
            "trees": Choice(
                "nmt.features.trees.source:SOURCE",
                "bracketed files: files, folders, patterns such as parsed/*.mrg, and sections such as wsj:02-21",
            )
        },
    },
    tasks={
        "trees": Choice("nmt.features.trees.task:TREES", "the sentence's constituency tree, section 6.3 of the paper")
    },
    check="nmt.features.trees.settings:check",
    sections=("nmt.features.trees.section:drawn_trees",),
    metrics={
        "bracket_f1": "nmt.features.trees.metrics:F1",
        "bracket_precision": "nmt.features.trees.metrics:PRECISION",
        "bracket_recall": "nmt.features.trees.metrics:RECALL",
        "complete_match": "nmt.features.trees.metrics:COMPLETE_MATCH",
    },
    findings={"repairs": "nmt.features.trees.repairs:REPAIRS"},
    control="nmt.features.trees.control:well_formed",
)
