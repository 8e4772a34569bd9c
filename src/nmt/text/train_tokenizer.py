"""Train a SentencePiece model on raw text; the same text always gives the same model."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from nmt.config.data import TokenizerConfig
from nmt.errors import UserError
from nmt.text.lines import read_lines
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK

MAX_LINE_BYTES = 4192
"""SentencePiece does not train on longer lines (its own default)."""
THREADS = 16
"""Fixed, because the last digits of a unigram model depend on it."""
SAMPLE_SEED = 1
"""Fixed, so that the vocabulary depends only on the text and not on the seed of the run."""
MAX_SENTENCES = 5_000_000
"""A larger text is sampled, which limits memory."""
BLOCK_LINES = 1 << 20
"""Lines from which a sample is drawn at a time."""


def train(lines: Iterable[str], count: int, config: TokenizerConfig, tags: Sequence[str] = ()) -> bytes:
    """Train a model on `count` lines, and return its content; each tag becomes one piece with the space before it."""
    symbols: dict[str, Any] = {"user_defined_symbols": [SPACE_MARK + tag for tag in tags]} if tags else {}
    try:
        return _train(
            (line for line in sample(lines, count, MAX_SENTENCES) if line and not line.isspace()),
            model_type=config.model_type,
            vocab_size=config.vocab_size,
            remove_extra_whitespaces=False,
            max_sentence_length=MAX_LINE_BYTES,
            num_threads=THREADS,
            **symbols,
        )
    except RuntimeError as error:
        raise UserError(_explain(str(error), f"tokenizer.vocab_size={config.vocab_size}")) from error


def train_on_symbols(files: Iterable[Path]) -> bytes:
    """Return a model for linearised trees, in which every symbol between spaces is a piece."""
    symbols = {symbol for line in chain.from_iterable(map(read_lines, files)) for symbol in line.split()}
    size = len(symbols) + len((UNK, PAD, BOS, EOS))
    return _train(iter(sorted(symbols)), model_type="word", use_all_vocab=True, vocab_size=size)


def _train(sentences: Iterator[str], **options: Any) -> bytes:
    """Train a model with these options and those that all models share."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences,
        model_writer=model,
        normalization_rule_name="identity",
        character_coverage=1.0,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        minloglevel=3,
        **options,
    )
    return model.getvalue()


def sample(lines: Iterable[str], count: int, size: int) -> Iterator[str]:
    """Yield a random sample of `size` of `count` lines, in their order; all lines if there are no more."""
    lines = iter(lines)
    if size >= count:
        yield from lines
        return
    generator = np.random.default_rng(SAMPLE_SEED)
    while count:
        block = min(count, BLOCK_LINES)
        taken = int(generator.hypergeometric(size, count - size, block))
        chosen = np.zeros(block, dtype=bool)
        chosen[generator.choice(block, taken, replace=False)] = True
        yield from compress(islice(lines, block), chosen.tolist())
        count -= block
        size -= taken


def _explain(reason: str, asked: str) -> str:
    if found := re.search(r"value <= (\d+)", reason):
        return f"{asked} is more than the text allows: set it to {found[1]} or less, or give more text."
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        return f"{asked} is less than the text needs for its characters alone: set it to {found[1]} or more."
    if "sentences_.empty()" in reason:
        return f"the tokenizer has no text to learn from: all lines are empty or longer than {MAX_LINE_BYTES} bytes."
    return f"training the tokenizer failed ({' '.join(reason.split())}): try another {asked}."
