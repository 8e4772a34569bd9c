"""`nmt translate`: translate a file or standard input, line by line."""

import json
import sys
from collections.abc import Iterator
from itertools import tee

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.schema import Config
from nmt.decoding.engine import WINDOW_LINES, Translation
from nmt.decoding.load_engine import load_engine
from nmt.text.streams import STANDARD, open_output, read_input


def run(config: Config) -> None:
    """Translate; lines come out in order, each as soon as those it was decoded with are done."""
    engine = load_engine(config, prepare_machine(config.runtime)).engine
    typed = config.input == STANDARD and bool(sys.stdin) and sys.stdin.isatty()
    sources, lines = tee(read_input(config.input))
    prefixes = read_input(config.prefix, "prefix") if config.prefix else None
    with open_output(config.output) as output, tqdm(unit=" lines", leave=False, disable=True if typed else None) as bar:
        window = 1 if typed else WINDOW_LINES
        translations = engine.translate(sources, prefixes=prefixes, window=window, done=bar.update)
        for index, (line, translation) in enumerate(zip(lines, translations, strict=False)):
            for row in _rows(config, index, line, translation):
                output.write(f"{row}\n".encode())
            output.flush()


def _rows(config: Config, index: int, line: str, translation: Translation) -> Iterator[str]:
    """What is written of a line. Text lists several candidates as Moses does, with the line's index from 0."""
    candidates = translation.candidates
    if config.format == "jsonl":
        listed = [{"translation": each.text, "score": each.score} for each in candidates]
        yield json.dumps({"source": line, **listed[0], "candidates": listed}, ensure_ascii=False)
    elif config.format == "tsv":
        source = line.replace("\t", " ")
        yield from (f"{source}\t{each.text.replace(chr(9), ' ')}\t{each.score:.6f}" for each in candidates)
    elif config.decoding.nbest == 1:
        yield translation.text
    else:
        yield from (f"{index} ||| {each.text} ||| {each.score:.6f}" for each in candidates)
