"""Make the vocabulary of linearised trees: a piece per bracket and tag."""

import io
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import sentencepiece

from nmt.text.lines import read_lines
from nmt.text.special import BOS, EOS, PAD, UNK


def train_on_files(files: Sequence[Path]) -> bytes:
    """Return a SentencePiece model in which every symbol between spaces is a piece."""
    symbols = {symbol for line in chain.from_iterable(map(read_lines, files)) for symbol in line.split()}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sorted(symbols)),
        model_writer=model,
        model_type="word",
        use_all_vocab=True,
        vocab_size=len(symbols) + len((UNK, PAD, BOS, EOS)),
        normalization_rule_name="identity",
        character_coverage=1.0,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        minloglevel=3,
    )
    return model.getvalue()
