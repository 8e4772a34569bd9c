"""A plain definition of BPE-dropout, one word at a time."""

from itertools import pairwise

import numpy as np
from sentencepiece import SentencePieceProcessor

from nmt.data.noise import Sentences


def sentences_of(ids: list[list[int]]) -> Sentences:
    return Sentences(
        np.array([token for sentence in ids for token in sentence], np.int64), np.array(list(map(len, ids)))
    )


def lists(sentences: Sentences) -> list[list[int]]:
    return [part.tolist() for part in np.split(sentences.tokens, np.cumsum(sentences.lengths)[:-1])]


def bpe_dropout(
    processor: SentencePieceProcessor,
    sentences: list[list[int]],
    share: float,
    random: np.random.Generator,
) -> list[list[int]]:
    """Return sentences in other pieces: Algorithm 1 of Provilkov et al., all words step by step."""
    words = [_words(processor, each) for each in sentences]
    open_words = [word for sentence in words for word in sentence]
    while open_words:
        open_words = [word for word in open_words if _merge(processor, word, share, random)]
    return [[processor.piece_to_id(text) for word in sentence for text in word] for sentence in words]


def _words(processor: SentencePieceProcessor, ids: list[int]) -> list[list[str]]:
    """Return the characters of each word of a sentence; an unknown piece counts as one."""
    words: list[list[str]] = []
    for number, piece in enumerate(map(processor.id_to_piece, ids)):
        known = processor.piece_to_id(piece) == ids[number] and not processor.is_unknown(ids[number])
        if not number or piece.startswith("▁"):
            words.append([])
        words[-1] += list(piece) if known else [piece]
    return words


def _merge(processor: SentencePieceProcessor, word: list[str], share: float, random: np.random.Generator) -> bool:
    """Do the first merge of a word that is not left out; return whether there is one."""
    possible = []
    for index, (left, right) in enumerate(pairwise(word)):
        whole = processor.piece_to_id(left + right)
        if not processor.is_unknown(whole) and random.random() >= share:
            possible.append((-processor.get_score(whole), index))
    if possible:
        _, index = min(possible)
        word[index : index + 2] = [word[index] + word[index + 1]]
    return bool(possible)
