"""Tokenizers: round trips, fixed special ids, and errors of bad models and vocabularies."""

import io
import random
from itertools import islice
from pathlib import Path

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


def trained(**settings: object) -> bytes:
    config = TokenizerConfig(**{"vocab_size": 90, **settings})  # type: ignore[arg-type]
    lines = sentences(400)
    return train_tokenizer.train(lines, len(lines), config)[0]


@pytest.fixture(scope="module")
def joint() -> Tokenizer:
    return Tokenizer(trained())


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize(
    "text",
    [
        *("the red ship", "  the  red   ship ", " ", "", "façade — «Straße»", "it's 7,5"),
        *(" leading", "trailing ", "hosu eths"),
    ],
)
def test_decoding_gives_the_encoded_text_back(model_type: str, text: str) -> None:
    tokenizer = Tokenizer(trained(model_type=model_type))
    assert tokenizer.decode(tokenizer.encode_target([text])[0]) == text


def test_a_single_line_is_encoded_like_one_of_several(joint: Tokenizer) -> None:
    for line in [*sentences(20), "", " ", "\0", "日本 🙂", "a\u2028b"]:
        assert joint.encode_source([line]) == joint.encode_source([line, "the"])[:1]


@pytest.mark.parametrize(
    "text",
    [
        "the red ship",
        "  the\tred  ship ",
        "the\u00a0red\u3000ship",
        "\u2009the red \u202fship\r\n",
        "the\u2028red ship",
    ],
)
def test_rare_white_space_of_a_sentence_to_translate_is_a_space(joint: Tokenizer, text: str) -> None:
    assert joint.encode_input([text]) == joint.encode_source(["the red ship"])


def test_white_space_that_the_training_text_often_has_is_kept() -> None:
    lines = [f"ship\u00a0! {line}" for line in sentences(400)]
    tokenizer = Tokenizer(train_tokenizer.train(lines, len(lines), TokenizerConfig(vocab_size=150))[0])
    assert tokenizer.encode_input(["red\u00a0! the\tship"]) == tokenizer.encode_source(["red\u00a0! the ship"])


def test_special_ids_are_fixed_and_not_added(joint: Tokenizer) -> None:
    model = sentencepiece.SentencePieceProcessor(model_proto=trained())
    assert [model.id_to_piece(index) for index in range(4)] == ["<unk>", "<pad>", "<s>", "</s>"]
    ids = joint.encode_source(["the red ship"])[0]
    assert not set(ids) & {0, 1, 2, 3}
    assert joint.decode([2, *ids, 3, 1, 1]) == "the red ship"
    assert joint.encode_source(["✈"])[0][-1] == 0


def test_pieces_for_bytes_write_no_line_breaks(tmp_path: Path) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(400)), model_writer=model, vocab_size=400, byte_fallback=True, minloglevel=3,
        pad_id=1, bos_id=2, eos_id=3, unk_id=0,
    )  # fmt: skip
    tokenizer = Tokenizer(model.getvalue())
    ids = [tokenizer.vocabularies[1].index(piece) for piece in ("<0x41>", "<0x0A>", "<0x42>")]
    assert tokenizer.decode(ids) == "A B"


def test_special_ids_are_checked(tmp_path: Path) -> None:
    other = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(200)), model_writer=other, vocab_size=90, minloglevel=3
    )
    (tmp_path / "tokenizer.model").write_bytes(other.getvalue())
    with pytest.raises(UserError, match=r"tokenizer\.model has the special ids .* 0, -1, 1, 2, but 0, 1, 2, 3"):
        Tokenizer.load(tmp_path)


def test_a_loaded_tokenizer_equals_the_saved_one(tmp_path: Path, joint: Tokenizer) -> None:
    joint.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.model"]
    assert loaded.joint
    assert loaded.checksum == joint.checksum
    assert loaded.source_size == loaded.target_size == 90
    assert loaded.encode_source(sentences(20, 1)) == joint.encode_target(sentences(20, 1))


@pytest.mark.parametrize("damage", [b"", b"not a model", "half", "no text"])
def test_a_damaged_file_is_named_in_one_line(
    tmp_path: Path, joint: Tokenizer, damage: bytes | str, capfd: pytest.CaptureFixture[str]
) -> None:
    joint.save(tmp_path)
    path = tmp_path / "tokenizer.model"
    whole = path.read_bytes()
    named = {"half": whole[:1000], "no text": whole.replace(b"<unk>", b"\xbcunk>", 1)}
    path.write_bytes(named[damage] if isinstance(damage, str) else damage)
    with pytest.raises(UserError, match=r"tokenizer\.model is damaged") as error:
        Tokenizer.load(tmp_path)
    assert "\n" not in str(error.value)
    assert capfd.readouterr().err == ""


def test_a_missing_tokenizer_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read the tokenizer .*tokenizer\.model"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_training_is_deterministic_and_silent(model_type: str, capfd: pytest.CaptureFixture[str]) -> None:
    first = trained(model_type=model_type)
    assert first == trained(model_type=model_type)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_error_of_a_too_large_vocabulary_names_a_size_that_works(model_type: str) -> None:
    with pytest.raises(
        UserError, match=r"vocab_size=50000 is more than the text allows: set it to (\d+) or less"
    ) as error:
        trained(model_type=model_type, vocab_size=50_000)
    largest = int(str(error.value).split("set it to ")[1].split()[0])
    assert Tokenizer(trained(model_type=model_type, vocab_size=largest)).source_size == largest


def test_error_of_a_too_small_vocabulary_names_a_size_that_works() -> None:
    with pytest.raises(UserError, match=r"vocab_size=10 is less than .* set it to (\d+) or more") as error:
        trained(vocab_size=10)
    least = int(str(error.value).split("set it to ")[1].split()[0])
    assert Tokenizer(trained(vocab_size=least)).source_size == least


def test_skipped_lines_are_counted() -> None:
    long = "große " * 1000
    lines = [*sentences(300), long, long, "", " ", "▅ reserved", "x" * 4192]
    model, seen = train_tokenizer.train(lines, len(lines), TokenizerConfig(vocab_size=90))
    assert (seen.offered, seen.used, seen.too_long, seen.empty, seen.reserved) == (306, 301, 2, 2, 1)
    assert Tokenizer(model).source_size == 90


def test_text_without_usable_lines_is_an_error() -> None:
    with pytest.raises(UserError, match="no text to learn from: of 2 lines, 2 are empty"):
        train_tokenizer.train(["", " "], 2, TokenizerConfig(vocab_size=90))


@pytest.mark.parametrize("size", [1, 37, 99])
def test_sample_keeps_order_and_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(train_tokenizer, "BLOCK_LINES", 30)
    lines = [f"{number:03}" for number in range(100)]
    taken = list(train_tokenizer.sample(lines, 100, size))
    assert len(taken) == len(set(taken)) == size
    assert taken == sorted(taken)
    assert set(taken) <= set(lines)
    assert taken == list(train_tokenizer.sample(lines, 100, size))


def test_a_sample_of_more_than_a_billion_lines_is_drawn() -> None:
    lines = map(str, range(3 << 20))
    taken = [int(line) for line in islice(train_tokenizer.sample(lines, 2 * 10**9, 10**6), 1000)]
    assert taken == sorted(set(taken))
    assert taken[-1] == pytest.approx(1000 * 2000, rel=0.2)


@pytest.mark.parametrize("size", [1, 37, 99])
def test_sample_of_many_lines_keeps_order_and_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(train_tokenizer, "MAX_HYPERGEOMETRIC", 0)
    test_sample_keeps_order_and_size(monkeypatch, size)
