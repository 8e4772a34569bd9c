"""Trains a SentencePiece model on raw text, the same model from the same text every time."""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress, islice

import numpy as np
import sentencepiece

from nmt.config.schema import TokenizerConfig
from nmt.errors import UserError
from nmt.text.special import BOS, EOS, PAD, UNK

MAX_LINE_BYTES = 4192
"""SentencePiece does not learn from longer lines (its own default)."""
RESERVED = "\u2585"
"""SentencePiece marks unknown words with this character, so it does not learn from lines that hold it."""
THREADS = 16
"""A fixed number: the unigram model depends on it in its last digits."""
SAMPLE_SEED = 1
"""A fixed seed: the same text makes the same vocabulary, whatever the seed of the run."""
BLOCK = 1 << 20


@dataclass(slots=True)
class LinesSeen:
    """What became of the lines that were offered for training."""

    offered: int = 0
    """Lines of text there were."""
    used: int = 0
    """Lines the model learned from."""
    empty: int = 0
    """Sampled lines without text."""
    too_long: int = 0
    """Sampled lines of more than MAX_LINE_BYTES bytes."""
    reserved: int = 0
    """Sampled lines that hold the reserved character."""

    def usable(self, lines: Iterable[str]) -> Iterator[str]:
        """Pass on the lines that SentencePiece can learn from, counting them and the others."""
        for line in lines:
            if not line or line.isspace():
                self.empty += 1
            elif 4 * len(line) > MAX_LINE_BYTES < len(line.encode()):
                self.too_long += 1
            elif RESERVED in line:
                self.reserved += 1
            else:
                self.used += 1
                yield line


def train(lines: Iterable[str], count: int, config: TokenizerConfig) -> tuple[bytes, LinesSeen]:
    """Train a model on `lines`, of which there are `count`; give its content, and what was left out."""
    seen = LinesSeen(offered=count)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=seen.usable(sample(lines, count, config.training_sentences)),
            model_writer=model,
            model_type=config.model_type,
            vocab_size=config.vocab_size,
            normalization_rule_name=config.normalization,
            remove_extra_whitespaces=config.normalization != "identity",
            character_coverage=config.character_coverage,
            max_sentence_length=MAX_LINE_BYTES,
            num_threads=THREADS,
            unk_id=UNK,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            minloglevel=3,
        )
    except RuntimeError as error:
        raise UserError(_explain(str(error), seen, config)) from error
    return model.getvalue(), seen


def sample(lines: Iterable[str], count: int, size: int) -> Iterator[str]:
    """Choose `size` of `count` lines at random, keeping their order; all where size is 0."""
    lines = iter(lines)
    if not size or size >= count:
        yield from lines
        return
    generator = np.random.default_rng(SAMPLE_SEED)
    while count:
        block = min(count, BLOCK)
        take = int(generator.hypergeometric(size, count - size, block))
        chosen = np.zeros(block, dtype=bool)
        chosen[generator.choice(block, take, replace=False)] = True
        yield from compress(islice(lines, block), chosen.tolist())
        count -= block
        size -= take


def _explain(reason: str, seen: LinesSeen, config: TokenizerConfig) -> str:
    asked = f"tokenizer.vocab_size={config.vocab_size}"
    if found := re.search(r"value <= (\d+)", reason):
        return f"{asked} is more than the text allows: set it to {found[1]} or less, or give more text."
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        return (
            f"{asked} is less than the text needs for its characters alone: set it to more than {found[1]}, "
            "or lower tokenizer.character_coverage."
        )
    if not seen.used:
        return (
            f"the tokenizer has no text to learn from: of {seen.offered} lines, {seen.empty} are empty "
            f"and {seen.too_long} longer than {MAX_LINE_BYTES} bytes."
        )
    return f"training the tokenizer failed ({' '.join(reason.split())}): try another {asked}."
