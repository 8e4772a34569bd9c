"""`nmt parse`: print the constituency trees of sentences."""

import sys
from itertools import tee

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.data import TREES
from nmt.config.tree import Config
from nmt.decoding.engine import WINDOW_LINES
from nmt.decoding.load import load_engine
from nmt.errors import UserError
from nmt.parsing.linearise import Repairs, repair
from nmt.parsing.trees import bracketed, drawn
from nmt.text.lines import check_used_once, is_interactive, open_output, read_input

WRITERS = {"bracketed": bracketed, "drawn": drawn}
"""Functions that write a tree, by `parse.format`."""


def run(config: Config) -> None:
    """Write a tree per sentence, in the order of the input; an empty line stays empty."""
    check_used_once(config.input, [config.output])
    lines = read_input(config.input)
    loaded = load_engine(config, prepare_machine(config.runtime))
    if loaded.languages[1] != TREES:
        raise UserError(
            f"{loaded.path} translates {'-'.join(loaded.languages)}: parse needs a model of trees, "
            "such as that of experiment=parsing/demo"
        )
    write, total = WRITERS[config.parse.format], Repairs()
    window, no_bar = (1, True) if is_interactive(config.input) else (WINDOW_LINES, None)
    # words are separated by spaces and nothing else, so that every tree has as many as the model reads
    sources, sentences = tee(" ".join(line.split()) for line in lines)
    with open_output(config.output) as output, tqdm(unit=" lines", leave=False, disable=no_bar) as bar:
        translations = loaded.engine.translate(sources, window=window, done=bar.update)
        for sentence, translation in zip(sentences, translations, strict=False):
            tree, repairs = repair(translation.text, sentence.split())
            total += repairs if sentence else Repairs()
            output.write(f"{'' if tree is None else write(tree)}\n".encode())
            output.flush()
    if total.trees:
        tqdm.write(f"repaired: {total}", file=sys.stderr)
