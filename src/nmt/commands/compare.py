"""`nmt compare`: print how runs differ."""

from nmt.commands.report import read_runs
from nmt.config.schema import Config
from nmt.report.comparison import as_text, by_name


def run(config: Config) -> None:
    """Print the scores of the runs, with their significance, and the settings that differ."""
    print(as_text(by_name(read_runs(config))))
