"""Convert text to tokens and back, with one SentencePiece model for both languages or one per language."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import sentencepiece

from nmt.errors import UserError
from nmt.storage.files import replacing
from nmt.text.lines import on_one_line
from nmt.text.special import BOS, EOS, PAD, UNK

JOINT_FILE = "tokenizer.model"
SOURCE_FILE = "tokenizer.source.model"
TARGET_FILE = "tokenizer.target.model"
REMEDY = "restore it, or make it again with the command that made it"
"""What to do if a tokenizer cannot be used."""
SPACE_MARK = "▁"
"""The mark in a vocabulary for the space before a word."""
WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))


class Tokenizer:
    """Turns source and target sentences into ids of word pieces, without special ones such as EOS, and back."""

    def __init__(self, source: bytes, target: bytes | None = None, *, name: str = "tokenizer") -> None:
        """Take the content of one model for both languages, or of two models; errors call it `name`."""
        self.models: tuple[bytes, ...] = (source,) if target is None else (source, target)
        """The content of the one or two models, from which the same tokenizer can be made."""
        self.contents = source, source if target is None else target
        """The source model and the target model; the same one twice if there is one."""
        self.checksum = hashlib.sha256(b"".join(self.models)).hexdigest()
        self.files = dict(zip(trained_file_names(joint=target is None), self.models, strict=True))
        """The content of its files, by name."""
        self._source = _processor(source, name)
        self._target = self._source if target is None else _processor(target, name)
        self.vocabularies = _pieces(self._source), _pieces(self._target)
        """The tokens of the source and the target vocabulary, in the order of their ids."""
        self.source_size, self.target_size = map(len, self.vocabularies)
        self.joint = self.vocabularies[0] == self.vocabularies[1]
        """Whether the two languages share one vocabulary, even if each has its own model."""

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """Load the one or two models in a folder."""
        paths = [folder / name for name in trained_file_names(joint=not (folder / SOURCE_FILE).exists())]
        try:
            models = [path.read_bytes() for path in paths]
        except OSError as error:
            raise UserError(f"cannot read the tokenizer {error.filename}: {error.strerror}: {REMEDY}") from error
        return cls(*models, name=" and ".join(map(str, paths)))

    def save(self, folder: Path) -> None:
        """Write the one or two models into a folder."""
        for name, content in self.files.items():
            with replacing(folder / name) as partial:
                partial.write_bytes(content)

    def encode_source(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of source sentences."""
        return _encode(self._source, lines)

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of target sentences."""
        return _encode(self._target, lines)

    def encode_input(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of sentences to translate, with single spaces for white space that models know little of."""
        return self.encode_source([self.with_spaces[0](line) for line in lines])

    @cached_property
    def with_spaces(self) -> tuple[Callable[[str], str], ...]:
        """For source and target, the function that makes single spaces of white space that is rare in it."""
        return tuple(map(_with_single_spaces, self.vocabularies))

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens of source ids as the vocabulary spells them."""
        return [self.vocabularies[0][piece] for piece in ids]

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens of target ids as the vocabulary spells them."""
        return [self.vocabularies[1][piece] for piece in ids]

    def target_ids(self, pieces: Sequence[str]) -> list[int]:
        """Return the target ids of tokens as the vocabulary spells them."""
        return [int(self._target.piece_to_id(piece)) for piece in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a target sentence, without PAD, BOS, EOS and the line breaks of pieces for bytes."""
        real = [int(piece) for piece in ids if piece not in (PAD, BOS, EOS)]
        return on_one_line(str(self._target.decode(real)))


def trained_file_names(*, joint: bool) -> tuple[str, ...]:
    """Return the names of the files of a tokenizer with one model for both languages, or with one for each."""
    return (JOINT_FILE,) if joint else (SOURCE_FILE, TARGET_FILE)


def _with_single_spaces(pieces: Sequence[str]) -> Callable[[str], str]:
    """Return what makes single spaces of white space that is rare in the training text, given the vocabulary.

    It is rare, as tabs and no-break spaces usually are, if no piece of several characters has it.
    """
    usual = set("".join(piece for piece in pieces if len(piece) > 1))
    rare = {ord(each): " " for each in WHITE_SPACE if each not in usual}
    return lambda line: " ".join(filter(None, line.translate(rare).split(" ")))


def _pieces(processor: sentencepiece.SentencePieceProcessor) -> tuple[str, ...]:
    return tuple(processor.id_to_piece(list(range(processor.get_piece_size()))))


def _encode(processor: sentencepiece.SentencePieceProcessor, lines: Sequence[str]) -> list[list[int]]:
    if len(lines) == 1:  # SentencePiece starts a thread for a list
        return [processor.encode(lines[0], out_type=int)]
    return list(processor.encode(list(lines), out_type=int, num_threads=1))


def _processor(model: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    sentencepiece.set_min_log_level(3)
    try:
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(model)
        _pieces(processor)
    except (RuntimeError, UnicodeDecodeError) as error:  # UnicodeDecodeError: a token is not valid text
        raise UserError(f"{name} is damaged or not a SentencePiece model: {REMEDY}") from error
    ids = (processor.unk_id(), processor.pad_id(), processor.bos_id(), processor.eos_id())
    if ids != (UNK, PAD, BOS, EOS):
        raise UserError(
            f"{name} has the special ids unk, pad, bos, eos = {', '.join(map(str, ids))}, "
            f"but {UNK}, {PAD}, {BOS}, {EOS} are needed: {REMEDY}"
        )
    return processor
