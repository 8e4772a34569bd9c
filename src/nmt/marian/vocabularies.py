"""Marian's files of vocabularies: one SentencePiece model for both languages, or one for each."""

from pathlib import Path

from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer

JOINT, SEPARATE = ("vocab.spm",), ("vocab.source.spm", "vocab.target.spm")
"""Names of the files."""


def write_vocabularies(folder: Path, tokenizer: Tokenizer) -> tuple[str, str]:
    """Write the models of a tokenizer; return the names of the files for the source and the target."""
    names = JOINT if len(tokenizer.models) == 1 else SEPARATE
    for name, content in zip(names, tokenizer.models, strict=True):
        (folder / name).write_bytes(content)
    return names[0], names[-1]


def read_vocabularies(folder: Path) -> list[bytes]:
    """Return the contents of the one or two models in a folder."""
    names = SEPARATE if (folder / SEPARATE[0]).is_file() else JOINT
    try:
        return [(folder / name).read_bytes() for name in names]
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}. Copy all files of the model") from error
