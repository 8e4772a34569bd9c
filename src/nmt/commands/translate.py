"""`nmt translate`: translate a file or standard input, line by line."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import tee

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.tree import Config
from nmt.decoding.engine import WINDOW_LINES
from nmt.decoding.load import load_engine
from nmt.decoding.translation import Candidate, Translation
from nmt.text.alignments import write_links
from nmt.text.lines import check_used_once, is_interactive, open_output, read_input


def run(config: Config) -> None:
    """Write a translation per line, in the order of the input; each block of lines is written as soon as it is done."""
    alignments = [config.translate.alignments] if config.translate.alignments else []
    check_used_once(config.input, [config.output, *alignments])
    sources, lines = tee(read_input(config.input))
    machine = prepare_machine(config.runtime)
    if alignments:
        config = replace(config, decoding=replace(config.decoding, alignments=True))
    engine = load_engine(config, machine).engine
    window, no_bar = (1, True) if is_interactive(config.input) else (WINDOW_LINES, None)
    with (
        open_output(config.output) as output,
        open_output(config.translate.alignments) if alignments else nullcontext() as links,
        tqdm(unit=" lines", leave=False, disable=no_bar) as bar,
    ):
        translations = engine.translate(sources, window=window, done=bar.update)
        for index, (line, translation) in enumerate(zip(lines, translations, strict=False)):
            for row in _rows(config, index, line, translation):
                output.write(f"{row}\n".encode())
            output.flush()
            if links:
                links.write(f"{write_links(translation.candidates[0].alignment)}\n".encode())


def _record(config: Config, candidate: Candidate) -> dict[str, object]:
    alignment = {"alignment": list(map(list, candidate.alignment))} if config.decoding.alignments else {}
    return {"translation": candidate.text, "score": candidate.score, **alignment}


def _rows(config: Config, index: int, line: str, translation: Translation) -> Iterator[str]:
    """Yield the output rows of one input line.

    Text lists several candidates in Moses's n-best format, which begins with the index of the line, from 0.
    """
    candidates = translation.candidates
    if config.translate.format == "jsonl":
        listed = [_record(config, each) for each in candidates]
        yield json.dumps({"source": line, **listed[0], "candidates": listed}, ensure_ascii=False)
    elif config.translate.format == "tsv":
        source = line.replace("\t", " ")
        yield from (f"{source}\t{each.text.replace(chr(9), ' ')}\t{each.score:.6f}" for each in candidates)
    elif config.decoding.nbest == 1:
        yield translation.text
    else:
        yield from (f"{index} ||| {each.text} ||| {each.score:.6f}" for each in candidates)
