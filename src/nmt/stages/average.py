"""Stage `average`: one checkpoint out of the last or best of a run."""

from nmt.config.schema import Config
from nmt.runs.averaging import choose, write_averaged
from nmt.runs.checkpoints import Checkpoints


def run(config: Config) -> None:
    """Average the checkpoints that the settings choose, and say which they were."""
    paths = choose(Checkpoints(config.run_folder, config.training.best_by), config.averaging)
    folder = write_averaged(config.run_folder, paths)
    print(f"averaged {len(paths)} checkpoints into {folder}:")
    for path in paths:
        print(f"  {path}")
