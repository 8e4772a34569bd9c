"""Three runs on one corpus: the second translates worse than the first, the third has no translations."""

from pathlib import Path

import pytest

from nmt.config.tree import Config
from tests.report.runs import make_run, prepare_toy, references, renamed, settings


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Make three runs and return the first, which drops the first word of every third sentence."""
    folder: Path = tmp_path_factory.mktemp("report")
    prepare_toy(folder)
    config = settings(folder)
    lines = references(config)
    make_run(config, [line if index % 3 else line.partition(" ")[2] for index, line in enumerate(lines)])
    make_run(renamed(config, "second"), [line.partition(" ")[2] for line in lines])
    make_run(renamed(config, "third"))
    return config
