"""Write the records of a run when its training starts or resumes."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.runs.environment import environment, read_environment
from nmt.runs.layout import RunLayout
from nmt.runs.listener import open_listeners
from nmt.runs.tracker import Tracker
from nmt.storage.files import write_json, write_text


def start_tracker(config: Config, step: int, origin: Mapping[str, Any] | None = None, precision: str = "") -> Tracker:
    """Write config.yaml and environment.json, and return a tracker that drops events of later steps."""
    layout = RunLayout(config.run_folder)
    write_text(layout.settings, to_yaml(config))
    described = environment(config, config.data_folder, origin, precision)
    if step and layout.environment.is_file():
        with suppress(UserError):  # a damaged one is replaced
            described = described.after(read_environment(layout.environment))
    write_json(layout.environment, described.to_json())
    tracker = Tracker(layout.folder, step)
    tracker.listeners = open_listeners(config, step)
    return tracker
