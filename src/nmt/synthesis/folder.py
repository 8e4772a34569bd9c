"""The folder of a translated file: shards that are a corpus, how they are made, and the answers of a teacher."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import UserError
from nmt.storage.files import LOCK, PARTIAL, exclusive_folder, read_json, write_json

MANIFEST, JOURNAL = "manifest.json", "answers.journal"
Answer = tuple[str, str]
"""What a teacher wrote, and why it ended: stop, length, content_filter, refusal, or unknown."""


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
            names = {file.name for file in self.path.iterdir() if file.name != LOCK and PARTIAL not in file.name}
            if MANIFEST in names:
                self._check_same(made_with)
            elif names:  # which `data.train` might take for a shard
                raise UserError(f"{self.path} holds {min(names)} and no {MANIFEST}: choose another output")
            write_json(self.path / MANIFEST, {"made_with": made_with})
            yield

    def _check_same(self, now: Mapping[str, object]) -> None:
        manifest = read_json(self.path / MANIFEST, f"delete {self.path}, or choose another output")
        before = manifest.get("made_with") if isinstance(manifest, dict) else None
        if not isinstance(before, dict):
            raise UserError(f"{self.path / MANIFEST} is not of translations: choose another output")
        for key in sorted({*before, *now}) if any(self.path.glob("train-*.jsonl")) else ():
            if before.get(key) != now.get(key):
                values = f"{before.get(key)!s:.20}, not {now.get(key)!s:.20}"  # checksums are long
                raise UserError(
                    f"{self.path} was begun with another {key} ({values}): use the same, or choose another output"
                )


class Journal:
    """The answers of a teacher by the keys of requests, written as soon as they are there, so that none is lost."""

    def __init__(self, path: Path) -> None:
        """Read what was written before, except for lines that a kill has cut short."""
        self.path, self.answers, self.tokens = path, dict[str, list[Answer]](), (0, 0)
        content = path.read_bytes() if path.is_file() else b""
        for line in content.splitlines():
            with suppress(ValueError, TypeError):
                self._note(**json.loads(line))
        self._file = path.open("ab")
        self._file.write(b"" if content[-1:] in b"\n" else b"\n")

    def add(self, key: str, answers: Sequence[Answer], tokens: Sequence[int] = (0, 0)) -> None:
        """Write the answers to a request, and how many tokens the prompt and the answers have."""
        try:
            self._file.write(json.dumps({"key": key, "answers": answers, "tokens": tokens}).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror}. Free some space, and run again.") from error
        self._note(key, answers, tokens)

    def _note(self, key: str, answers: Sequence[Answer], tokens: Sequence[int]) -> None:
        self.answers[key] = [(text, end) for text, end in answers]
        self.tokens = (self.tokens[0] + tokens[0], self.tokens[1] + tokens[1])
