"""The folder of a translated file: shards that are a corpus, and a manifest that says how they are made."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import UserError
from nmt.storage.files import LOCK, PARTIAL, exclusive_folder, read_json, seal, write_json

MANIFEST = "manifest.json"
CHECKSUMS = ("input", "checkpoint", "decoding.ensemble", "decoding.terms")
"""Entries of the manifest that are checksums, which an error does not show."""


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
    def exclusive(self, made_with: Mapping[str, object]) -> Iterator[None]:
        """Lock the folder; refuse it if its shards are made with other settings, or if it is something else."""
        taken = "is being written by another process: wait until it is done, or choose another output"
        with exclusive_folder(self.path, taken=taken, setting="output"):
            before = self._read_manifest()
            if before is not None and any(self.path.glob("train-*.jsonl")):
                self._check_same(before, made_with)
            else:
                write_json(self.path / MANIFEST, {"made_with": made_with, "seal": seal(made_with)})
            yield

    def _read_manifest(self) -> Mapping[str, object] | None:
        """Return with what the folder was begun; None if it is new."""
        manifest, remedy = self.path / MANIFEST, f"delete {self.path}, or choose another output"
        if not manifest.is_file():
            for file in self.path.iterdir():  # which `data.train` might take for a shard
                if file.name != LOCK and PARTIAL not in file.name:
                    raise UserError(f"{self.path} holds {file.name} and no {MANIFEST}: choose another output")
            return None
        content = read_json(manifest, remedy)
        if not isinstance(content, dict) or "made_with" not in content:  # such as a prepared corpus
            raise UserError(
                f"{self.path} is no folder of translations, though it has a {MANIFEST}: choose another output"
            )
        made_with: Mapping[str, object] = content["made_with"]
        if content.get("seal") != seal(made_with):
            raise UserError(f"{manifest} is damaged: {remedy}")
        return made_with

    def _check_same(self, before: Mapping[str, object], now: Mapping[str, object]) -> None:
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                values = f" ({before.get(key)}, not {now.get(key)})" if key not in CHECKSUMS else ""
                raise UserError(
                    f"{self.path} was begun with another {key}{values}: use the same, or choose another output"
                )
