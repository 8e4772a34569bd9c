"""`nmt init`: write a small project with an experiment, which runs as it is."""

import shlex
from pathlib import Path

from nmt.config.folders import folder_to_write
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.new_project.settings import InitConfig
from nmt.storage.files import write_text

TEMPLATES = Path(__file__).parent / "templates"
FILES = {
    "conf/experiment/mine.yaml": "mine.yaml",
    "Makefile": "Makefile",
    "README.md": "README.md",
    ".gitignore": "gitignore",
}
"""The file of each template."""


def run(config: Config) -> None:
    """Write the files, unless one of them is there."""
    folder = folder_to_write("init.folder", config.of(InitConfig).folder)
    if there := [name for name in FILES if (folder / name).exists()]:
        raise UserError(f"{folder / there[0]} exists: give another init.folder=, or move the file away")
    for name, template in FILES.items():
        write_text(folder / name, (TEMPLATES / template).read_text(encoding="utf-8"))
        print(folder / name)
    inside = "" if folder == Path() else f"cd {shlex.quote(str(folder))}; "
    print(f"Run it:  {inside}nmt all experiment=mine")
