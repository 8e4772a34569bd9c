"""`nmt compare`: print how runs, or groups of runs, differ."""

from nmt.config.schema import Config
from nmt.features.report import groups
from nmt.features.report.command import names_groups, read_groups, read_runs
from nmt.features.report.comparison import as_text, by_name


def run(config: Config) -> None:
    """Print the scores of the runs or groups, with their significance, and the settings that differ."""
    if names_groups(config):
        print(groups.as_text(read_groups(config)))
    else:
        print(as_text(by_name(read_runs(config))))
