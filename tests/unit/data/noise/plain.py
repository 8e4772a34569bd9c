"""Plain definitions of noise and of its random numbers, one sentence and one word at a time."""

from itertools import pairwise
from zlib import crc32

import numpy as np
import sentencepiece

from nmt.data.noise import Sentences

MASK = (1 << 64) - 1
STRIDE = 0x9E3779B97F4A7C15


def sentences_of(ids: list[list[int]]) -> Sentences:
    return Sentences(
        np.array([token for sentence in ids for token in sentence], np.int64), np.array(list(map(len, ids)))
    )


def lists(sentences: Sentences) -> list[list[int]]:
    return [part.tolist() for part in np.split(sentences.tokens, np.cumsum(sentences.lengths)[:-1])]


def split_mix(number: int) -> int:
    """Return the output function of SplitMix64, as its authors give it in C."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def key_of(seed: int, epoch: int, sentence: int, kind: str) -> int:
    start = int(np.random.SeedSequence([seed, epoch, crc32(kind.encode())]).generate_state(1, np.uint64)[0])
    return split_mix((start + sentence * STRIDE) & MASK)


def draw(key: int, counter: int) -> float:
    return float((split_mix((key + counter * STRIDE) & MASK) >> 11) / 2**53)


def bpe_dropout(processor: sentencepiece.SentencePieceProcessor, ids: list[int], share: float, key: int) -> list[int]:
    """Return a sentence in other pieces: Algorithm 1 of Provilkov et al., word by word."""
    pieces: list[str] = [processor.id_to_piece(each) for each in ids]
    found: list[int] = []
    word: list[str] = []
    before = place = 0
    for number, piece in enumerate(pieces):
        known = processor.piece_to_id(piece) == ids[number] and not processor.is_unknown(ids[number])
        if number and piece.startswith("▁"):
            found += _merged(processor, word, share, key, before)
            word, before = [], place
        characters = list(piece) if known else [piece]
        word += characters
        place += len(characters)
    return found + _merged(processor, word, share, key, before)


def _merged(
    processor: sentencepiece.SentencePieceProcessor, word: list[str], share: float, key: int, before: int
) -> list[int]:
    parts = [(before + index, text) for index, text in enumerate(word)]
    step = 0
    while True:
        possible = []
        for index, ((place, left), (_, right)) in enumerate(pairwise(parts)):
            whole = processor.piece_to_id(left + right)
            if not processor.is_unknown(whole) and draw(key, place + (step << 32)) >= share:
                possible.append((-processor.get_score(whole), index))
        if not possible:
            return [processor.piece_to_id(text) for _, text in parts]
        _, index = min(possible)
        parts[index : index + 2] = [(parts[index][0], parts[index][1] + parts[index + 1][1])]
        step += 1
