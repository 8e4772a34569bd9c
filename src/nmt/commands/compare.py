"""`nmt compare`: how runs differ, on the terminal."""

from nmt.commands.report import read_runs
from nmt.config.schema import Config
from nmt.report.comparison import as_text, by_name


def run(config: Config) -> None:
    """Print the scores of the runs, with what chance may do to them, and the settings that differ."""
    print(as_text(by_name(read_runs(config))))
