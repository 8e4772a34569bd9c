"""An extended vocabulary keeps the old ids, knows the new text, and relates new pieces to old ones."""

import io

import pytest
import sentencepiece

from nmt.errors import UserError
from nmt.text.extend_tokenizer import compositions, extend
from nmt.text.sentencepiece_model import BPE, UNIGRAM, Piece, model_type, read_pieces, with_pieces
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import Tokenizer

OLD = ["the small cat sees a dog", "a dog sees the cat", "cats see dogs and the small dog"] * 5
NEW = ["der König küßt die Königin", "ein Hund sieht die Königin", "the cat sieht den König"] * 5


def learn(lines: list[str], size: int, kind: str = "bpe") -> bytes:
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=content, model_type=kind, vocab_size=size, minloglevel=2,
        normalization_rule_name="identity", unk_id=UNK, pad_id=PAD, bos_id=BOS, eos_id=EOS, hard_vocab_limit=False,
    )  # fmt: skip
    return content.getvalue()


@pytest.mark.parametrize(("kind", "number"), [("bpe", BPE), ("unigram", UNIGRAM)])
def test_pieces_are_read_and_written_as_the_library_does(kind: str, number: int) -> None:
    model = learn(OLD, 45, kind)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = read_pieces(model, "it")
    assert [piece.text for piece in pieces] == [library.id_to_piece(index) for index in range(len(pieces))]
    assert [piece.score for piece in pieces] == [library.get_score(index) for index in range(len(pieces))]
    assert model_type(model) == number
    written = sentencepiece.SentencePieceProcessor(model_proto=with_pieces(model, pieces))
    assert written.encode(OLD) == library.encode(OLD)


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


def test_a_vocabulary_per_language_is_extended_on_each_side() -> None:
    old = Tokenizer(learn(OLD, 45), learn(OLD, 42))
    extended = extend(old, Tokenizer(learn(NEW, 60), learn(OLD + NEW, 60)), 64, "base")
    assert (extended.source_size, extended.target_size) == (64, 64)


@pytest.mark.parametrize(
    ("learned", "size", "words"),
    [
        (Tokenizer(learn(NEW, 60, "unigram")), 80, "cannot be extended: it is bpe, but tokenizer.model_type=unigram"),
        (Tokenizer(learn(NEW, 60), learn(NEW, 50)), 80, "tokenizer.joint=false: set tokenizer.joint=true"),
        (Tokenizer(learn(NEW, 60)), 45, "it has 45 pieces, and tokenizer.vocab_size=45 is not more: raise it"),
    ],
    ids=["type", "joint", "size"],
)  # fmt: skip
def test_a_vocabulary_that_cannot_be_extended_is_refused(learned: Tokenizer, size: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        extend(Tokenizer(learn(OLD, 45)), learned, size, "base")


def test_a_new_piece_consists_of_the_old_pieces_that_spell_it() -> None:
    old = learn(OLD, 45)
    known = {piece.text: index for index, piece in enumerate(read_pieces(old, "old"))}
    new = with_pieces(old, [*read_pieces(old, "old")[:4], Piece("▁cat", 0), Piece("atdog", 0), Piece("ß", 0)])
    found = compositions(old, new, "old")
    assert found[:4] == [[UNK], [PAD], [BOS], [EOS]]
    assert found[4] == [known["▁cat"]]
    spelled = [read_pieces(old, "old")[index].text for index in found[5]]
    assert "".join(spelled) == "atdog"
    assert not spelled[0].startswith("▁")
    assert found[6] == []


@pytest.mark.parametrize("damage", [b"", b"\x0a", b"\x0a\x05ab", b"\xff" * 12, b"\x0b\x00", b"\x0a\x02\x0a\x05"])
def test_damaged_models_are_refused_in_one_line(damage: bytes) -> None:
    if not damage:
        assert read_pieces(damage, "it") == []
        return
    with pytest.raises(UserError, match="it is damaged or not a SentencePiece model"):
        read_pieces(damage, "it")
