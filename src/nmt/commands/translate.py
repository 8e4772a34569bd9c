"""`nmt translate`: translate a file or standard input, line by line."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import repeat, tee
from typing import BinaryIO

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.schema import Config
from nmt.decoding.detail import all_details, detail_files, with_details_of_files
from nmt.decoding.engine import WINDOW_LINES
from nmt.decoding.engines import choose_engine
from nmt.decoding.load_engine import load_engine
from nmt.decoding.request import Request
from nmt.decoding.translation import Candidate, Translation
from nmt.errors import UserError
from nmt.text.streams import check_used_once, is_interactive, open_output, read_input


def run(config: Config) -> None:
    """Write a translation per line, in the order of the input; each block of lines is written as soon as it is done."""
    prefix = [config.translate.prefix] if config.translate.prefix else []
    check_used_once([config.input, *prefix], [config.output, *detail_files(config.translate).values()])
    machine = prepare_machine(config.runtime)
    config = with_details_of_files(config)
    engine = load_engine(choose_engine(config, machine), machine).engine
    window, no_bar = (1, True) if is_interactive(config.input) else (WINDOW_LINES, None)
    sources, lines = tee(read_input(config.input))
    with (
        open_output(config.output) as output,
        _open_details(config) as files,
        tqdm(unit=" lines", leave=False, disable=no_bar) as bar,
    ):
        translations = engine.translate(_requests(config, sources), window=window, done=bar.update)
        for index, (line, translation) in enumerate(zip(lines, translations, strict=False)):
            for row in _rows(config, index, line, translation):
                output.write(f"{row}\n".encode())
            output.flush()
            for name, file in files.items():
                file.write(f"{all_details()[name].line(translation.candidates[0].details[name])}\n".encode())


@contextmanager
def _open_details(config: Config) -> Iterator[dict[str, BinaryIO]]:
    """Open the files with details of the translations, by the name of the detail."""
    with ExitStack() as stack:
        files = detail_files(config.translate).items()
        yield {name: stack.enter_context(open_output(file)) for name, file in files}


def _requests(config: Config, lines: Iterator[str]) -> Iterator[Request]:
    """Yield each line with the beginning of its translation."""
    prefix = config.translate.prefix
    beginnings = read_input(prefix, "translate.prefix") if prefix else repeat("")
    for line in lines:
        beginning = next(beginnings, None)
        if beginning is None:
            raise UserError("there are fewer prefixes than lines: give one prefix per line, which may be empty")
        yield Request(line, beginning)
    if prefix and next(beginnings, None) is not None:
        tqdm.write("warning: there are more prefixes than lines: the last ones are not used", file=sys.stderr)


def _record(candidate: Candidate) -> dict[str, object]:
    details = {name: all_details()[name].to_json(value) for name, value in candidate.details.items()}
    return {"translation": candidate.text, "score": candidate.score, **details}


def _rows(config: Config, index: int, line: str, translation: Translation) -> Iterator[str]:
    """Yield the output rows of one input line.

    Text lists several candidates in Moses's n-best format, which begins with the index of the line, from 0.
    """
    candidates = translation.candidates
    if config.translate.format == "jsonl":
        listed = list(map(_record, candidates))
        yield json.dumps({"source": line, **listed[0], "candidates": listed}, ensure_ascii=False)
    elif config.translate.format == "tsv":
        source = line.replace("\t", " ")
        yield from (f"{source}\t{each.text.replace(chr(9), ' ')}\t{each.score:.6f}" for each in candidates)
    elif config.decoding.nbest == 1:
        yield translation.text
    else:
        yield from (f"{index} ||| {each.text} ||| {each.score:.6f}" for each in candidates)
