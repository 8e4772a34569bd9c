"""`nmt translate`: translate a file or standard input, line by line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from nmt.config.compose import from_yaml
from nmt.config.schema import Config
from nmt.data.readers import decode_lines, read_lines
from nmt.decoding.translate import WINDOW, Translation, Translator, load_model
from nmt.errors import UserError
from nmt.files import replacing
from nmt.machine import prepare_machine
from nmt.runs.checkpoints import load, resolve

STANDARD = "-"
"""Standard input, or output."""


def run(config: Config) -> None:
    """Translate; lines come out in order, each as soon as those it was decoded with are done."""
    machine = prepare_machine(config.runtime)
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    model, tokenizer = load_model(checkpoint, from_yaml(checkpoint.config_text).model, machine.device)
    translator = Translator([model], tokenizer, config.decoding, *machine)
    typed = config.input == STANDARD and sys.stdin.isatty()
    with _output(config.output) as output, tqdm(unit=" lines", leave=False, disable=True if typed else None) as bar:
        translations = translator.translate(_input(config.input), window=1 if typed else WINDOW, done=bar.update)
        for index, translation in enumerate(translations):
            output.write(_format(index, translation, config.decoding.nbest).encode())
            output.flush()


def _input(name: str) -> Iterator[str]:
    if name == STANDARD:
        return decode_lines(sys.stdin.buffer, "standard input")
    if not Path(name).is_file():
        raise UserError(f"input={name} does not exist or is not a file: name a file, or - for standard input")
    return read_lines(Path(name))


@contextmanager
def _output(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD:
        yield sys.stdout.buffer
        return
    with replacing(Path(name)) as partial, partial.open("wb") as file:
        yield file


def _format(index: int, translation: Translation, nbest: int) -> str:
    """One line; for n-best lists one for each candidate, with the line's index from 0 as in Moses' lists."""
    if nbest == 1:
        return f"{translation.text}\n"
    return "".join(f"{index} ||| {each.text} ||| {each.score:.6f}\n" for each in translation.candidates)
