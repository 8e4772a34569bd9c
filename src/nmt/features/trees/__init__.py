"""Constituency trees (section 6.3 of the paper): a task, from bracketed files to scores and drawings."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="constituency trees of sentences as the target side, and a search among well-formed ones",
    sections=("nmt.parsing.section:drawn_trees",),
)
