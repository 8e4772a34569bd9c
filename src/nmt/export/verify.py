"""Compare an export, in the program that it is for, with the model that it was made from."""

from collections.abc import Sequence
from itertools import islice, repeat

from nmt.config.folders import expanded
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu
from nmt.export.target import Reader
from nmt.text.lines import read_lines
from nmt.text.special import UNKNOWN_MARK

SAMPLE = 200
"""Sentences whose translations must agree before the export is complete."""
MIN_IDENTICAL = {"float32": 0.9, "int8": 0.5}
"""The smallest share of the sample whose translations must be identical: beam searches end in different ways."""
MAX_DIFFERENCE = {"float32": 1e-3, "int8": 0.1}
"""The largest mean difference allowed between log-probabilities of word pieces."""


def read_sample(config: Config) -> tuple[list[str], list[str]]:
    """Read the text that `input` names, without references, or else the first pairs of the validation set."""
    source, target = (
        config.data_folder / f"valid.{each}" for each in (config.data.source_lang, config.data.target_lang)
    )
    path = source if config.input == "-" else expanded(config.input)
    if not path.is_file():
        raise UserError(
            f"there is no {path} to verify the export with: name a text in the source language with input=FILE"
        )
    has_references = config.input == "-" and target.is_file()
    pairs = zip(read_lines(path), read_lines(target) if has_references else repeat(""), strict=False)
    chosen = list(islice((pair for pair in pairs if pair[0].strip()), SAMPLE))
    if not chosen:
        raise UserError(f"{path} is empty, so the export cannot be verified: name another text with input=FILE")
    return [line for line, _ in chosen], [reference for _, reference in chosen] if has_references else []


def verify(
    model: TorchEngine, export: Reader, lines: Sequence[str], quantization: str
) -> tuple[list[str], list[str], str]:
    """Return the translations of both, and how they and their scores compare, in one line; both search in the same way.

    An export that behaves like another model is refused.
    """
    ours, theirs = [each.text for each in model.translate(lines)], export.translate(lines)
    different = [pair for pair in zip(ours, theirs, strict=True) if _known(pair[0]) != _known(pair[1])]
    scored = list(zip(model.score(lines, ours), export.score(lines, ours), strict=True))
    gap = sum(abs(one.log_probability - other) for one, other in scored) / sum(one.tokens for one, _ in scored)
    same = len(lines) - len(different)
    found = (
        f"{same:,} of {len(lines):,} translations identical ({same / len(lines):.1%}), "
        f"log-probabilities of word pieces differ by {gap:.1e}"
    )
    allowed = max(1, round(len(lines) * (1 - MIN_IDENTICAL[quantization])))
    if len(different) > allowed or not gap <= MAX_DIFFERENCE[quantization]:
        example = "".join(f"; {one!r} became {other!r}" for one, other in different[:1])
        raise UserError(
            f"the export was deleted because it does not translate as the model does: {found}{example}. "
            "Train longer if the model has seen few steps (ties are common then), or try another export.target"
        )
    return ours, theirs, found


def _known(text: str) -> list[str]:
    """Return the words of a translation, but for unknown ones, which some programs leave out."""
    return text.replace(UNKNOWN_MARK, " ").split()


def quality(config: Config, model: Sequence[str], export: Sequence[str], references: Sequence[str]) -> str:
    """Compare the BLEU of the model, searched as `eval` does, with that of the export, searched as its users do."""
    bleu = make_bleu(bleu_tokenizer(config.data.target_lang, config.evaluation.bleu_tokenizer))
    ours, theirs = (bleu.corpus_score(texts, [references]).score for texts in (model, export))
    return f"BLEU {theirs:.2f} instead of {ours:.2f} ({theirs - ours:+.2f})"
