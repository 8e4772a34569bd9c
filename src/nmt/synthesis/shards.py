"""Translate a file of any size, shard by shard.

The result depends only on the text, the models and the settings: not on the number of processes, and not on
interruptions. A shard is written completely or not at all, so only shards that are not there are still to do.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice, tee
from typing import NamedTuple

from nmt.decoding.engine import Done, Engine
from nmt.errors import UserError
from nmt.storage.files import replacing
from nmt.synthesis.folder import SynthesisFolder
from nmt.text.lines import STANDARD, is_device, read_input

SCORE = "score"
"""Column of the log-probability per word piece."""
SCORE_DIGITS = 4


class InputText(NamedTuple):
    """A file to translate."""

    name: str
    lines: int
    checksum: str
    """Checksum of the lines, however the file is compressed."""


def scan_input(name: str) -> InputText:
    """Read a file once, to count its lines, and to refuse text that cannot be read."""
    if name == STANDARD or is_device(name):
        raise UserError("name the file to translate: input=FILE (plain, .gz or .xz)")
    digest, count = sha256(), 0
    for line in read_input(name):
        digest.update(f"{line}\n".encode())
        count += 1
    if not count:
        raise UserError(f"input={name} is empty: name a file with text")
    return InputText(name, count, digest.hexdigest())


def chunks(text: InputText, folder: SynthesisFolder, numbers: Sequence[int]) -> Iterator[tuple[int, Iterator[str]]]:
    """Yield each of some shards, in order, with its lines, which must be read before the next one."""
    lines, position = read_input(text.name), 0
    for number in sorted(numbers):
        shard = folder.lines_of(number)
        deque(islice(lines, shard.start - position), maxlen=0)
        position = shard.stop
        yield number, islice(lines, len(shard))


def write_shards(
    engine: Engine, text: InputText, languages: tuple[str, str], folder: SynthesisFolder, numbers: Sequence[int],
    done: Done,
) -> None:  # fmt: skip
    """Translate and write some shards, in order.

    Args:
        engine: translates.
        text: the file to translate.
        languages: the names of the columns: the language of the file and that of the translations.
        folder: where the shards go.
        numbers: the shards to write.
        done: called with the number of lines that have just been translated.
    """
    for number, lines in chunks(text, folder, numbers):
        with replacing(folder.shard(number)) as partial, partial.open("wb") as file:
            for row in rows(engine, lines, folder.lines_of(number), languages, done):
                file.write(row)


def rows(
    engine: Engine, lines: Iterable[str], numbers: range, languages: tuple[str, str], done: Done
) -> Iterator[bytes]:
    """Yield a line of a shard per translation of each line, best first."""
    engine.same_batches = True
    source_lang, target_lang = languages
    lines, originals = tee(lines)
    translations = engine.translate(lines, window=len(numbers), numbers=(number + 1 for number in numbers), done=done)
    for line, translation in zip(originals, translations, strict=True):
        for each in translation.candidates:
            score = round(each.mean_log_probability, SCORE_DIGITS)
            row = {source_lang: line, target_lang: each.text, SCORE: score}
            yield f"{json.dumps(row, ensure_ascii=False)}\n".encode()
