"""Constituency trees (section 6.3 of the paper): a task, from bracketed files to scores and drawings."""

from nmt.feature import COMMON, Command, Feature

FEATURE = Feature(
    summary="constituency trees of sentences as the target side, and a search among well-formed ones",
    commands={
        "parse": Command(
            "nmt.parsing.parse",
            "print the constituency trees of sentences",
            ("checkpoint", "engine", "input", "output", "parse", "decoding", *COMMON),
        ),
    },
    sections=("nmt.parsing.section:drawn_trees",),
)
