"""Tokenizers: round trips, fixed special ids, and errors of bad models and vocabularies."""

import io
import random
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from nmt.config.data import TokenizerConfig
from nmt.errors import UserError
from nmt.text import train_tokenizer
from nmt.text.tokenizer import Tokenizer

SYLLABLES = ["ba", "ken", "til", "o", "rum", "sche", "ver", "lich", "ing", "pra"]
REAL = ["the", "red", "ship", "house", "über", "große", "Straße", "façade", "12", "7,5", "—", "«quoted»", "it's"]
WORDS = [*REAL, *(first + second + third for first in SYLLABLES for second in SYLLABLES for third in SYLLABLES[:4])]


def sentences(count: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(3, 9))) for _ in range(count)]


def trained(lines: list[str] | None = None, **settings: object) -> bytes:
    config = TokenizerConfig(**{"vocab_size": 90, **settings})  # type: ignore[arg-type]
    lines = lines or sentences(400)
    return train_tokenizer.train(lines, len(lines), config)


def by_library(**settings: Any) -> bytes:
    """Return a model with other settings than ours."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(400)), model_writer=model, minloglevel=3, **settings
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def joint() -> Tokenizer:
    return Tokenizer(trained())


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_decoding_gives_the_encoded_text_back(model_type: str) -> None:
    model = trained(model_type=model_type)
    assert model == trained(model_type=model_type), "training must be deterministic"
    tokenizer = Tokenizer(model)
    for text in ("the red ship", "  the  red   ship ", " ", "", "façade — «Straße»", "trailing ", "hosu eths"):
        assert tokenizer.decode(tokenizer.encode_target([text])[0]) == text
        assert tokenizer.encode_source([text]) == tokenizer.encode_source([text, "the"])[:1]


@pytest.mark.parametrize("text", ["  the\tred  ship ", "the\u00a0red\u3000ship", "\u2009the red \u202fship\r\n"])
def test_rare_white_space_of_a_sentence_to_translate_is_a_space(joint: Tokenizer, text: str) -> None:
    assert joint.encode_input([text]) == joint.encode_source(["the red ship"])


def test_white_space_that_the_training_text_often_has_is_kept() -> None:
    tokenizer = Tokenizer(trained([f"ship\u00a0! {line}" for line in sentences(400)], vocab_size=150))
    assert tokenizer.encode_input(["red\u00a0! the\tship"]) == tokenizer.encode_source(["red\u00a0! the ship"])


def test_special_ids_are_fixed_and_not_added(joint: Tokenizer) -> None:
    assert joint.vocabularies[0][:4] == ("<unk>", "<pad>", "<s>", "</s>")
    ids = joint.encode_source(["the red ship"])[0]
    assert not set(ids) & {0, 1, 2, 3}
    assert joint.decode([2, *ids, 3, 1, 1]) == "the red ship"
    assert joint.encode_source(["✈"])[0][-1] == 0


def test_a_loaded_tokenizer_equals_the_saved_one(tmp_path: Path, joint: Tokenizer) -> None:
    joint.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.model"]
    assert (loaded.joint, loaded.checksum, loaded.source_size) == (True, joint.checksum, 90)
    assert loaded.encode_source(sentences(20, 1)) == joint.encode_target(sentences(20, 1))


def test_a_file_that_cannot_be_used_is_named_in_one_line(
    tmp_path: Path, joint: Tokenizer, capfd: pytest.CaptureFixture[str]
) -> None:
    path, whole = tmp_path / "tokenizer.model", joint.models[0]
    with pytest.raises(UserError, match=r"cannot read the tokenizer .*tokenizer\.model"):
        Tokenizer.load(tmp_path)
    for damage in (b"", b"not a model", whole[:1000], whole.replace(b"<unk>", b"\xbcunk>", 1)):
        path.write_bytes(damage)
        with pytest.raises(UserError, match=r"tokenizer\.model is damaged or not a SentencePiece model: [^\n]*$"):
            Tokenizer.load(tmp_path)
    path.write_bytes(by_library(vocab_size=90))
    with pytest.raises(UserError, match=r"tokenizer\.model has the special ids .* 0, -1, 1, 2, but 0, 1, 2, 3"):
        Tokenizer.load(tmp_path)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("size", "hint"), [(50_000, "or less"), (10, "or more")])
def test_error_of_a_vocabulary_names_a_size_that_works(size: int, hint: str) -> None:
    with pytest.raises(UserError, match=rf"vocab_size={size} is .*: set it to (\d+) {hint}") as error:
        trained(vocab_size=size)
    working = int(str(error.value).split("set it to ")[1].split()[0])
    assert Tokenizer(trained(vocab_size=working)).source_size == working


def test_lines_that_cannot_be_learned_from_are_skipped() -> None:
    lines = sentences(300)
    assert trained([*lines, "große " * 1000, "", " ", "▅ reserved"]) == trained(lines)
    with pytest.raises(UserError, match="no text to learn from: all lines are empty or longer than 4192 bytes"):
        trained(["", " "])
