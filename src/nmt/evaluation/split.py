"""The raw text of a split of the prepared data, to translate and score."""

from dataclasses import dataclass, field
from pathlib import Path

from nmt.config.data import DataConfig, is_text
from nmt.data.corpora import split_settings, untagged
from nmt.data.manifest import verify_task
from nmt.data.references import read_further_references
from nmt.errors import UserError
from nmt.parsing.linearise import check_references
from nmt.text.lines import read_lines


@dataclass(frozen=True, slots=True)
class Split:
    """The raw text of a split, line by line."""

    name: str
    sources: list[str]
    references: list[str]
    """The first reference of each sentence."""
    languages: tuple[str, str] = ("", "")
    further_references: list[list[str]] = field(default_factory=list)
    """The sentences of each reference after the first one."""
    tag: str = ""
    """The tag before each source sentence."""
    folder: Path = Path()
    """The folder of the prepared data, which may hold further files about the split."""

    @property
    def all_references(self) -> list[list[str]]:
        """The sentences of each reference."""
        return [self.references, *self.further_references]

    @property
    def untagged_sources(self) -> list[str]:
        """The source sentences without their tags, which no metric should see."""
        return [untagged(source, self.tag) for source in self.sources]


def read_split(folder: Path, data: DataConfig, name: str) -> Split:
    """Read the source and target text of a split of the data in a folder, which were prepared with these settings."""
    settings = split_settings(data, name)
    paths = [folder / f"{name}.{language}" for language in settings.languages]
    for path in paths:
        if not path.is_file():
            raise UserError(f"there is no {path}: run `make data` with the same settings, or name other splits")
    verify_task(folder, f"collect {name}")
    sources, references = (list(read_lines(path)) for path in paths)
    if len(sources) != len(references):
        lines = f"{paths[0]} has {len(sources):,} lines, but {paths[1]} has {len(references):,}"
        raise UserError(f"{lines}: run `make data` to write them again")
    if not sources:
        raise UserError(f"{paths[0]} is empty, so there is nothing to score: name other splits")
    further = read_further_references(folder, name)
    split = Split(name, sources, references, settings.languages, further, settings.tag, folder)
    if not is_text(settings.target_lang):
        check_references(split.untagged_sources, references, str(paths[1]))
    return split
