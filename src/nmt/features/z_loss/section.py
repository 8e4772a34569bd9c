"""The line about the z-loss of a run's page."""

from nmt.features.z_loss.settings import ZLossTraining
from nmt.runs.section import Section, ShownRun


def weight_section(run: ShownRun) -> Section | None:
    """Return a section with the weight; None if the run has no z-loss."""
    weight = run.config.of(ZLossTraining).z_loss
    if not weight:
        return None
    return Section("z-loss", "z-loss", f"<p>Training added {weight:g} times the squared log of the denominator.</p>")
