"""Write the records of a run when its training starts or resumes."""

from dataclasses import asdict

from nmt.config.saved import flatten, to_yaml
from nmt.config.schema import Config
from nmt.data.layout import CorpusLayout
from nmt.runs.environment import environment
from nmt.runs.layout import RunLayout
from nmt.runs.tracking import Tracker
from nmt.storage.files import write_json, write_text


def start_tracker(config: Config, step: int) -> Tracker:
    """Write config.yaml and environment.json, and return a tracker that drops events of later steps."""
    layout = RunLayout(config.run_folder)
    write_text(layout.settings, to_yaml(config))
    write_json(layout.environment, environment(config, CorpusLayout(config.data_folder).manifest).to_json())
    return Tracker(layout.folder, config.tracking, name=config.name, settings=flatten(asdict(config)), step=step)
