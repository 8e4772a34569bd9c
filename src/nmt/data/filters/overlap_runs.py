"""The filter that drops training pairs that contain much of a development or test sentence, as runs of words.

The runs of n words of each sentence (its n-grams) are known, with the sentences that they are in. A training sentence
is dropped if it contains a share of the different runs of one sentence. Shorter sentences have no runs. Runs that are
in many sentences are phrases of this kind of text, and are not compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config.data import DataConfig, is_text
from nmt.data.filters.overlap_words import word_hash, words_of
from nmt.data.filters.parallel import Keeps
from nmt.data.overlap import HeldOutPair
from nmt.data.sources.source import Pair, languages
from nmt.text.blocks import blocks
from nmt.text.plain import Hashes, sentence_digest

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
RUN_WORDS = 8
"""The words in a run."""
MAX_SENTENCES = 64
"""The largest number of different sentences with a run that is compared."""
RUN_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number, by whose powers the hashes of the words of a run are multiplied, so that their order matters."""
CHUNK_SENTENCES, CHUNK_CHARACTERS = 10_000, 1 << 24
"""The largest numbers of sentences, and about of characters, whose runs are computed together."""


class KnownRuns(NamedTuple):
    """The runs of the development and test text of a language."""

    hashes: Hashes
    """Those of the runs, sorted."""
    starts: Integers
    """Where the sentences of each run begin in `sentences`, and the end of the last."""
    sentences: Small
    needed: Small
    """For each sentence, the number of its runs that a training sentence must contain to be dropped."""


def runs_of(texts: Sequence[str], words: int) -> tuple[Hashes, Integers]:
    """Return hashes of all runs of this number of words in some texts, and the text that each is in."""
    hashes = [list(map(word_hash, words_of(text))) for text in texts]
    lengths = np.fromiter(map(len, hashes), np.int64, len(hashes))
    flat = np.fromiter((each for text in hashes for each in text), np.uint64, int(lengths.sum()))
    count = max(0, len(flat) - words + 1)
    found = np.zeros(count, np.uint64)
    for offset in range(words):
        found = found * RUN_FACTOR + flat[offset : offset + count]
    of_texts = np.repeat(np.arange(len(texts)), lengths)
    within = of_texts[:count] == of_texts[len(flat) - count :]
    return found[within], of_texts[:count][within]


def learn(config: DataConfig, text: Iterable[HeldOutPair]) -> dict[str, KnownRuns]:
    """Return the runs of development and test text by language."""
    sentences = _different(text)
    found: defaultdict[str, list[tuple[Hashes, Integers]]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    for block in blocks(sentences, CHUNK_SENTENCES, lambda each: len(each[1]), CHUNK_CHARACTERS):
        for language in sorted({each[0] for each in block}):
            texts = [sentence for its_language, sentence in block if its_language == language]
            hashes, of_texts = runs_of(texts, RUN_WORDS)
            found[language].append((hashes, of_texts + counts[language]))
            counts[language] += len(texts)
    return {language: _index(each, counts[language], config.overlap_share) for language, each in found.items()}


def _different(text: Iterable[HeldOutPair]) -> Iterator[tuple[str, str]]:
    """Yield the sentences of both sides with their languages, each once."""
    seen: set[tuple[str, bytes]] = set()
    for pair in text:
        for language, sentence in zip(pair.languages, (pair.source, pair.target), strict=True):
            key = language, sentence_digest(sentence)
            if key not in seen:
                seen.add(key)
                yield language, sentence


def _index(found: Sequence[tuple[Hashes, Integers]], count: int, share: float) -> KnownRuns:
    """Return the runs of some sentences in order, without those that are in many sentences."""
    hashes, sentences = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((sentences, hashes))
    hashes, sentences = hashes[order], sentences[order]
    new = np.ones(len(hashes), dtype=bool)  # a run may occur several times in a sentence
    new[1:] = (hashes[1:] != hashes[:-1]) | (sentences[1:] != sentences[:-1])
    hashes, sentences = hashes[new], sentences[new]
    known, sizes = np.unique(hashes, return_counts=True)
    rare = np.repeat(sizes <= MAX_SENTENCES, sizes)
    known, sizes, sentences = known[sizes <= MAX_SENTENCES], sizes[sizes <= MAX_SENTENCES], sentences[rare]
    runs = np.bincount(sentences, minlength=count)
    needed = np.maximum(1, np.ceil(runs * share - 1e-9))
    return KnownRuns(
        known, np.concatenate(([0], np.cumsum(sizes))), sentences.astype(np.int32), needed.astype(np.int32)
    )


def contain_sentences(texts: Sequence[str], known: KnownRuns) -> Integers:
    """Return the indices of the texts that contain enough of the runs of a sentence."""
    hashes, of_texts = runs_of(texts, RUN_WORDS)
    if not len(known.hashes) or not len(hashes):
        return np.zeros(0, np.int64)
    runs = np.minimum(np.searchsorted(known.hashes, hashes), len(known.hashes) - 1)
    is_known = known.hashes[runs] == hashes
    in_text, runs = np.divmod(np.unique(of_texts[is_known] * len(known.hashes) + runs[is_known]), len(known.hashes))
    sizes = known.starts[runs + 1] - known.starts[runs]
    ends = np.cumsum(sizes)
    places = np.arange(int(sizes.sum())) + np.repeat(known.starts[runs] - (ends - sizes), sizes)
    pairs = np.repeat(in_text, sizes) * len(known.needed) + known.sentences[places]
    found, counts = np.unique(pairs, return_counts=True)
    in_text, sentences = np.divmod(found, len(known.needed))
    return np.unique(in_text[counts >= known.needed[sentences]])


def judging(config: DataConfig, known: Mapping[str, KnownRuns]) -> Keeps:
    """Return the function that judges pairs by the known runs of their languages."""
    sides = languages(config)
    compared = [0, 1] if is_text(config.target_lang) else [0]  # different sentences often have the same tree

    def keeps(chunk: Sequence[Pair]) -> list[bool]:
        kept = np.ones(len(chunk), dtype=bool)
        for side in compared:
            if sides[side] in known:
                kept[contain_sentences([pair[side] for pair in chunk], known[sides[side]])] = False
        return [bool(each) for each in kept]

    return keeps
