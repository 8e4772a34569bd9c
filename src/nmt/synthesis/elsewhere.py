"""Translate shards on the workers of an engine that has devices, such as a cluster."""

import sys
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stderr
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.tree import Config
from nmt.data.engine import Workers, open_engine
from nmt.decoding.load_engine import load_engine
from nmt.errors import UserError
from nmt.storage.files import replacing
from nmt.synthesis.folder import SynthesisFolder
from nmt.synthesis.model import PackedModel, Translator, pack, temporary_folder
from nmt.synthesis.shards import InputText, chunks, rows


class Chunk(NamedTuple):
    """The lines of a shard."""

    number: int
    lines: list[str]
    positions: range
    """Their indices in the input."""


class Question(NamedTuple):
    """Asks what translates."""


class Translated(NamedTuple):
    """A shard that is translated."""

    number: int
    content: bytes
    machine: str
    """What has translated, as in `Translator`."""
    warnings: str


Item = Chunk | Question


def translating(packed: PackedModel) -> Callable[[Item], object]:
    """Return what a worker does, after it has loaded the model."""
    folder = temporary_folder()
    config = packed.unpack(Path(folder.name))
    machine = prepare_machine(replace(config.runtime, threads=config.runtime.threads or 1))
    loaded = load_engine(config, machine)

    def answer(item: Item) -> object:
        if isinstance(item, Question):
            return Translator.of(loaded, machine)
        with redirect_stderr(StringIO()) as said:
            translated = rows(loaded.engine, item.lines, item.positions, loaded.languages, lambda count: None)
            content = b"".join(translated)
        return Translated(item.number, content, str(machine), said.getvalue())

    return answer


def translate_elsewhere(config: Config, text: InputText, folder: SynthesisFolder) -> None:
    """Write the shards that are not there yet."""
    with (
        closing(open_engine(config)) as engine,
        closing(engine.device_workers("translates", translating, pack(config))) as workers,
    ):
        (translator,) = workers.map([Question()])
        with folder.exclusive(translator.made_with(config, text)):
            missing = folder.missing()
            print(f"{folder.path}: {text.lines:,} lines in {folder.shards:,} shards, {len(missing):,} to translate")
            _write(text, folder, missing, workers, translator.machine)


def _write(text: InputText, folder: SynthesisFolder, numbers: Sequence[int], workers: Workers, machine: str) -> None:
    """Write shards as soon as they are translated, in any order."""
    found = chunks(text, folder, numbers)
    items = (Chunk(number, list(lines), folder.lines_of(number)) for number, lines in found)
    total = sum(len(folder.lines_of(number)) for number in numbers)
    with tqdm(total=total, unit=" lines", leave=False, disable=None) as bar:
        for each in workers.map(items):
            if each.machine != machine:
                raise UserError(
                    f"some workers translate on {each.machine}, others on {machine}, which gives other translations: "
                    "set runtime.device and runtime.precision, or use machines of one kind"
                )
            sys.stderr.write(each.warnings)
            with replacing(folder.shard(each.number)) as partial:
                partial.write_bytes(each.content)
            bar.update(len(folder.lines_of(each.number)))
