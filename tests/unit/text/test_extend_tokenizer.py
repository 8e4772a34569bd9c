"""An extended vocabulary keeps the old ids, knows the new text, and relates new pieces to old ones."""

import pytest

from nmt.config.data import TokenizerConfig
from nmt.errors import UserError
from nmt.text.extend_tokenizer import extend
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train
from tests.unit.small_models import learn
from tests.unit.text.test_sentencepiece_model import OLD

NEW = ["der König küßt die Königin", "ein Hund sieht die Königin", "the cat sieht den König"] * 5


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_old_pieces_keep_their_ids_and_new_text_becomes_known(kind: str) -> None:
    old, learned = Tokenizer(learn(OLD, 45, kind)), Tokenizer(learn(NEW, 70, kind))
    assert UNK in old.encode_source(NEW)[0]
    extended = extend(old, learned, 80, "base")
    assert old.source_size < extended.source_size <= 80
    assert extended.joint
    assert extended.vocabularies[0][: old.source_size] == old.vocabularies[0]
    assert not any(UNK in ids for ids in extended.encode_source(NEW))
    assert [extended.decode(ids) for ids in extended.encode_target(NEW)] == NEW
    assert sum(map(len, extended.encode_source(NEW))) < sum(map(len, old.encode_source(NEW)))


@pytest.mark.parametrize(
    ("learned", "size", "words"),
    [
        (Tokenizer(learn(NEW, 60, "unigram")), 80, "cannot be extended, because its model type"),
        (Tokenizer(learn(NEW, 60)), 45, "it has 45 pieces, and tokenizer.vocab_size=45 is not more: raise it"),
    ],
    ids=["type", "size"],
)  # fmt: skip
def test_a_vocabulary_that_cannot_be_extended_is_refused(learned: Tokenizer, size: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        extend(Tokenizer(learn(OLD, 45)), learned, size, "base")


def test_extended_tokenizer_knows_new_tags_and_splits_other_text_as_before() -> None:
    old = Tokenizer(train(iter(OLD), len(OLD), TokenizerConfig(vocab_size=40)))
    learned = Tokenizer(train(iter(NEW), len(NEW), TokenizerConfig(vocab_size=40), ["<de>", "<fr>"]))
    extended = extend(old, learned, 60, "old")
    tagged = extended.encode_source([f"<fr> {OLD[0]}"])[0]
    assert extended.vocabularies[0][tagged[0]] == "▁<fr>"
    assert tagged[1:] == old.encode_source([OLD[0]])[0]
