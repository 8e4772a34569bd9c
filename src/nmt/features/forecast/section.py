"""The forecasts of a run on its page: a table, whose last row is what came of it."""

from contextlib import suppress

from nmt.errors import UserError
from nmt.features.forecast.figures import forecast_in
from nmt.page.templates import templates_of
from nmt.runs.layout import RunLayout
from nmt.runs.metrics import MetricsEvent, read_metrics
from nmt.runs.section import Section, ShownRun


def forecasts(run: ShownRun) -> Section | None:
    """Return a section with the forecasts of a run; None if it has made none."""
    events: list[MetricsEvent] = []
    with suppress(UserError):  # the page says elsewhere what is wrong with the file
        events = [each for each in read_metrics(RunLayout(run.config.run_folder).metrics) if each.event == "valid"]
    made = [(each.step, found) for each in events if (found := forecast_in(each)) is not None]
    if not made:
        return None
    environment = templates_of("nmt.features.forecast")
    losses = [(loss, each) for each in events if (loss := each.number("loss")) is not None]
    loss, best = min(losses, key=lambda found: found[0])
    shown = {"made": made, "step": events[-1].step, "loss": loss, "bleu": best.number("bleu")}
    return Section("forecasts", "Forecasts", environment.get_template("forecasts.html").render(shown))
