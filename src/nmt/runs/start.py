"""Write the records of a run when its training starts or resumes."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nmt.config.saved import flatten, to_yaml
from nmt.config.schema import Config
from nmt.data.layout import CorpusLayout
from nmt.runs.environment import environment
from nmt.runs.layout import RunLayout
from nmt.runs.tracking import Tracker
from nmt.storage.files import write_json, write_text


def start_tracker(config: Config, step: int, origin: Mapping[str, Any] | None = None) -> Tracker:
    """Write config.yaml and environment.json, and return a tracker that drops events of later steps."""
    layout = RunLayout(config.run_folder)
    write_text(layout.settings, to_yaml(config))
    described = environment(config, CorpusLayout(config.data_folder).manifest, origin)
    write_json(layout.environment, described.to_json())
    return Tracker(layout.folder, config.tracking, name=config.name, settings=flatten(asdict(config)), step=step)
