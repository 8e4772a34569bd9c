"""The section about trees of a run's page."""

from nmt.config.data import TREES
from nmt.parsing.drawing import tree_pictures
from nmt.runs.section import Absent, Section, ShownRun, templates_of


def drawn_trees(run: ShownRun) -> Section | None:
    """Return a section with a few trees of each split; None if there are no trees."""
    if run.config.data.target_lang != TREES or not run.translations:
        return None
    pictures = {
        split: lines if isinstance(lines, Absent) else tree_pictures(lines) for split, lines in run.translations.items()
    }
    environment = templates_of("nmt.parsing")
    environment.tests["absent"] = lambda value: isinstance(value, Absent)
    body = environment.get_template("trees.html").render(pictures=pictures)
    return Section("trees", "Trees", body, environment.get_template("trees.css").render())
