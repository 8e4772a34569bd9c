"""`nmt translate`: translate a file or standard input, line by line."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import tee

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.decoding.engine import WINDOW_LINES
from nmt.decoding.load import load_engine
from nmt.decoding.translation import Candidate, Translation
from nmt.errors import UserError
from nmt.parsing.linearise import repair
from nmt.parsing.trees import bracketed, drawn
from nmt.text.alignments import write_links
from nmt.text.lines import check_used_once, is_interactive, open_output, read_input

AS_TREE = {"bracketed": bracketed, "drawn": drawn}
"""Functions that write a tree, by `translate.format`."""


def run(config: Config) -> None:
    """Write a translation per line, in the order of the input; each block of lines is written as soon as it is done."""
    alignments = [config.translate.alignments] if config.translate.alignments else []
    check_used_once(config.input, [config.output, *alignments])
    given, as_trees = read_input(config.input), config.translate.format in AS_TREE
    # words are separated by spaces and nothing else, so that every tree has as many as the model reads
    sources, lines = tee((" ".join(line.split()) for line in given) if as_trees else given)
    machine = prepare_machine(config.runtime)
    if alignments:
        config = replace(config, decoding=replace(config.decoding, alignments=True))
    loaded = load_engine(config, machine)
    if as_trees and is_text(loaded.languages[1]):
        raise UserError(
            f"{loaded.path} translates {'-'.join(loaded.languages)}: translate.format={config.translate.format} needs "
            "a model of trees, such as that of experiment=parsing/demo"
        )
    window, no_bar = (1, True) if is_interactive(config.input) else (WINDOW_LINES, None)
    with (
        open_output(config.output) as output,
        open_output(config.translate.alignments) if alignments else nullcontext() as links,
        tqdm(unit=" lines", leave=False, disable=no_bar) as bar,
    ):
        translations = loaded.engine.translate(sources, window=window, done=bar.update)
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
    elif write := AS_TREE.get(config.translate.format):
        tree, _ = repair(translation.text, line.split())
        yield "" if tree is None else write(tree)
    elif config.decoding.nbest == 1:
        yield translation.text
    else:
        yield from (f"{index} ||| {each.text} ||| {each.score:.6f}" for each in candidates)
