"""Noise on pairs: each kind compared with its plain definition, and independence of everything but the sentence."""

import numpy as np
import pytest

from nmt.config.compose import compose
from nmt.config.data import NoiseConfig, TokenizerConfig
from nmt.data.noise import Noise, make_noise
from nmt.data.store import PairStore, in_memory
from nmt.demo.source import draw
from nmt.errors import ConfigError, UserError
from nmt.text.sentencepiece_model import USER_DEFINED, Piece, read_pieces, with_pieces
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train

PAIRS = [each.pair for each in draw(1, 400, 1, 1)["train"]]
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÜÉabcdefghijklmnopqrstuvwxyzäöüß"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    text = [*(side for pair in PAIRS for side in pair), *ALPHABET]
    return Tokenizer(train(iter(text), len(text), TokenizerConfig(vocab_size=300))[0])


@pytest.fixture(scope="module")
def store(tokenizer: Tokenizer) -> PairStore:
    return store_of(tokenizer, PAIRS)


def store_of(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> PairStore:
    sources, targets = zip(*pairs, strict=True)
    sides = tokenizer.encode_source(sources), tokenizer.encode_target(targets)
    source, target = (
        (np.array([each for ids in side for each in ids]), np.array([len(ids) for ids in side])) for side in sides
    )
    return in_memory(source, target)


def noise_of(tokenizer: Tokenizer, share: float = 0.1, seed: int = 1, max_pieces: int = 400) -> Noise:
    noise = make_noise(NoiseConfig(bpe_dropout=share), tokenizer, seed, max_pieces)
    assert noise is not None
    return noise


def ids(store: PairStore) -> list[tuple[list[int], list[int]]]:
    return [(store.source(index).tolist(), store.target(index).tolist()) for index in range(len(store))]


def test_noise_depends_on_seed_epoch_and_sentence_alone(tokenizer: Tokenizer, store: PairStore) -> None:
    noise = noise_of(tokenizer)
    everything = np.arange(len(PAIRS))
    whole = ids(noise(store, everything, 2))
    shuffled = np.random.default_rng(1).permutation(everything)
    for part in (shuffled[:100], shuffled[100:101], shuffled[101:]):
        assert ids(noise(store, part, 2)) == [whole[index] for index in part.tolist()]
    assert whole != ids(store)
    assert whole != ids(noise(store, everything, 3))
    assert whole != ids(noise_of(tokenizer, seed=2)(store, everything, 2))


def test_pairs_that_noise_makes_too_long_stay_as_they_were(tokenizer: Tokenizer, store: PairStore) -> None:
    everything, limit = np.arange(400), 30
    free = ids(noise_of(tokenizer, 0.4)(store, everything, 0))
    limited = ids(noise_of(tokenizer, 0.4, max_pieces=limit)(store, everything, 0))
    long = [max(map(len, pair)) > limit for pair in free]
    assert 20 < sum(long) < 380
    expected = [clean if too_long else pair for clean, pair, too_long in zip(ids(store), free, long, strict=True)]
    assert limited == expected


def test_noise_that_cannot_be_applied_is_refused() -> None:
    text = [side for pair in PAIRS for side in pair]
    unigram = Tokenizer(train(iter(text), len(text), TokenizerConfig(vocab_size=100, model_type="unigram"))[0])
    with pytest.raises(UserError, match=r"noise\.bpe_dropout needs a BPE tokenizer, .*model_type=bpe"):
        make_noise(NoiseConfig(bpe_dropout=0.1), unigram, 1, 99)
    dropout, unigram_setting = "noise.bpe_dropout=0.1", "tokenizer.model_type=unigram"
    with pytest.raises(ConfigError, match=r"noise\.bpe_dropout=0\.1 needs tokenizer\.model_type=bpe"):
        compose([dropout, unigram_setting])
    compose([dropout, unigram_setting, "training.init_from=old"])  # it may be of another type than the settings say
    trees = ["data.target_lang=trees", "tokenizer.joint=false", "training.valid_sentences=0"]
    with pytest.raises(ConfigError, match="needs text"):
        compose([*trees, "model.tie_embeddings=false", dropout])


def test_tags_of_corpora_stay_as_they_are(tokenizer: Tokenizer, store: PairStore) -> None:
    model = tokenizer.contents[0]
    pieces = [*read_pieces(model, "the model"), Piece("▁<bt>", 0, USER_DEFINED)]
    tagging, tag = Tokenizer(with_pieces(model, pieces)), len(pieces) - 1
    tagged = store_of(
        tagging, [(f"<bt> {source}" if number % 2 else source, t) for number, (source, t) in enumerate(PAIRS)]
    )
    assert tagged.source(1)[0] == tag
    everything = np.arange(len(PAIRS))
    noised = ids(noise_of(tagging)(tagged, everything, 0))
    expected = ids(noise_of(tokenizer)(store, everything, 0))
    assert noised == [([tag] * (number % 2) + source, target) for number, (source, target) in enumerate(expected)]
