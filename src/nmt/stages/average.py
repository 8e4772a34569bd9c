"""Stage `average`: one checkpoint out of the last or best of a run."""

from nmt.config.schema import AveragingConfig, Config
from nmt.runs.averaging import choose, write_averaged
from nmt.runs.checkpoints import Checkpoints


def run(config: Config) -> None:
    """Average the checkpoints that the settings choose, and say which they were."""
    paths = choose(Checkpoints(config.run_folder, config.training.best_by), config.averaging)
    folder = write_averaged(config.run_folder, paths)
    print(f"averaged {len(paths)} checkpoint{'s' if len(paths) > 1 else ''} into {folder}:")
    for path in paths:
        print(f"  {path}")
    if missing := _missing(config.averaging, len(paths)):
        print(missing)


def _missing(config: AveragingConfig, found: int) -> str:
    """What to say where the run has fewer checkpoints than are asked for."""
    key, wanted = ("best", config.best) if config.best else ("last", config.last)
    if config.checkpoints or found >= wanted:
        return ""
    return (
        f"note: averaging.{key}={wanted} asks for more, but the run has no others"
        f"{' that were validated' if config.best else ''}; a longer run, or a lower training.save_every, leaves more"
    )
