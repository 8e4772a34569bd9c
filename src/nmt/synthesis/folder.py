"""The folder of a translated file: shards that are a corpus, and a manifest that says how they are made."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmt.config.checks import NAMES_A_FILE, marked
from nmt.config.decoding import DecodingConfig
from nmt.errors import UserError
from nmt.storage.files import PARTIAL, read_json, seal, write_json
from nmt.storage.lock import LOCK, exclusive_folder

MANIFEST = "manifest.json"
SHARDS = "train-*.jsonl"
"""The pattern of the shards' names."""
CHECKSUMS = ("input", "checkpoint", "decoding.ensemble")
"""Entries of the manifest that are checksums, which an error does not show, besides those of settings' files."""

MadeWith = Mapping[str, object]
"""Everything on which the translations depend, as JSON: settings by name, and checksums of the input and the models."""


@dataclass(frozen=True, slots=True)
class SynthesisFolder:
    """The shards into which the translations of a file are divided."""

    path: Path
    lines: int
    """Lines of the input."""
    shard_lines: int
    """Lines of the input per shard; the last one may have fewer."""

    @property
    def shards(self) -> int:
        """The number of shards."""
        return -(-self.lines // self.shard_lines)

    def shard(self, number: int) -> Path:
        """Return the file of a shard. The names are those of the Hub's layout, so `data.train` can name the folder."""
        return self.path / f"train-{number:05}-of-{self.shards:05}.jsonl"

    def lines_of(self, number: int) -> range:
        """Return the indices of a shard's lines in the input."""
        first = number * self.shard_lines
        return range(first, min(first + self.shard_lines, self.lines))

    def missing(self) -> list[int]:
        """Return the shards that are not there yet; those that are there are whole."""
        return [number for number in range(self.shards) if not self.shard(number).is_file()]

    @contextmanager
    def exclusive(self, made_with: MadeWith) -> Iterator[None]:
        """Lock the folder; refuse it if it is made with other settings, or if it is something else."""
        taken = "is being written by another process: wait until it is done, or choose another output"
        with exclusive_folder(self.path, taken=taken, setting="output"):
            self._begin(made_with)
            yield

    def _begin(self, made_with: MadeWith) -> None:
        """Write the manifest, unless there are shards; refuse the folder if they are made with other settings."""
        manifest = self.path / MANIFEST
        if manifest.is_file():
            before = _read(manifest)
            if any(self.path.glob(SHARDS)):
                _check_same(self.path, before, made_with)
                return
        else:
            _check_new(self.path)
        write_json(manifest, {"made_with": made_with, "seal": seal(made_with)})


def _check_new(folder: Path) -> None:
    """Refuse a folder that holds other files, which `data.train` might take for shards."""
    for file in folder.iterdir():
        if file.name != LOCK and PARTIAL not in file.name:
            raise UserError(f"{folder} holds {file.name} and no {MANIFEST}: choose another output")


def _read(manifest: Path) -> MadeWith:
    damaged = UserError(f"{manifest} is damaged: delete {manifest.parent}, or choose another output")
    try:
        content = read_json(manifest)
    except UserError as error:
        raise damaged from error
    if not isinstance(content, dict) or "made_with" not in content:  # such as a prepared corpus
        raise UserError(
            f"{manifest.parent} is no folder of translations, though it has a {MANIFEST}: choose another output"
        )
    made_with = content["made_with"]
    if not isinstance(made_with, dict) or content.get("seal") != seal(made_with):
        raise damaged
    return made_with


def _check_same(folder: Path, before: MadeWith, now: MadeWith) -> None:
    checksums = (*CHECKSUMS, *(f"decoding.{name}" for name in marked(DecodingConfig, NAMES_A_FILE)))
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            values = f" ({before.get(key)}, not {now.get(key)})" if key not in checksums else ""
            raise UserError(f"{folder} was begun with another {key}{values}: use the same, or choose another output")
