"""`nmt export`: convert a trained model for other programs, and check that it translates the same."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import islice

import torch

from nmt import __version__
from nmt.compute.machine import Machine, prepare_machine
from nmt.config import registry
from nmt.config.saved import without_folders
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu
from nmt.evaluation.record import EvaluationRecord, read_evaluation
from nmt.export.record import ExportRecord, card, checksums_of
from nmt.export.target import Program, Target, TrainedModel
from nmt.model.backends.chosen import choose
from nmt.runs.checkpoint import CheckpointRecord, load
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import EXPORT_RECORD, SETTINGS, RunLayout, export_folder
from nmt.storage.files import replacing, write_json, write_text
from nmt.text.lines import STANDARD, read_input, read_lines
from nmt.text.special import UNKNOWN_MARK

CPU = torch.device("cpu")
SAMPLE = 200
"""Sentences whose translations must agree before the export is complete."""
MIN_IDENTICAL = {"float32": 0.9, "int8": 0.5}
"""The smallest share of the sample whose translations must be identical: beam searches end in different ways."""
MAX_DIFFERENCE = {"float32": 1e-3, "int8": 0.1}
"""The largest mean difference allowed between log-probabilities of word pieces."""


def run(config: Config) -> None:
    """Export the checkpoint that the settings name, and print how it compares with the model.

    Nothing is left behind unless the export passes its comparison.
    """
    prepare_machine(replace(config.runtime, device="cpu"))
    folder, export = export_folder(config), config.export
    if folder.is_dir() and any(folder.iterdir()) and not (folder / EXPORT_RECORD).is_file():
        raise UserError(f"{folder} exists and is no export: name another export.folder")
    target: Target = registry.load("export.target", export.target)
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    text = without_folders(checkpoint.config_text)
    settings = replace(checkpoint, config_text=text).config
    lines, references = map(list, zip(*_sample(config), strict=True))
    choose(Machine(CPU, torch.float32), kernels=False, trains=False)  # a trace sees only operations of PyTorch
    model, tokenizer = load_model(checkpoint, settings.model, CPU)
    search = config.decoding.plain_beam
    trained = TrainedModel(settings, checkpoint.weights, tokenizer, search, export.quantization)
    target.check(export.target, trained)
    with replacing(folder.resolve(), is_folder=True) as partial:
        target.write(partial, trained)
        engine = TorchEngine([model], tokenizer, search, CPU)
        program, searching = target.read(partial, trained), target.searching(engine, trained)
        ours, theirs = _texts(searching, lines), program.translate(lines)
        verified = verify(ours, theirs, _difference(searching, program, lines, ours), export.quantization)
        if any(references):
            usual_texts = ours if searching is engine else _texts(engine, lines)
            verified += f"; {_quality(config, usual_texts, theirs, references)}"
        origin = checkpoint.meta.origin
        write_text(partial / SETTINGS, text)
        record = ExportRecord(
            nmt=__version__,
            target=export.target,
            quantization=export.quantization,
            languages=settings.data.languages,
            positions=trained.positions,
            checkpoint=replace(CheckpointRecord.of(checkpoint.meta), path=""),
            origin=origin and replace(origin, path=""),
            verified=verified,
            sha256=checksums_of(partial),
        )
        write_json(partial / EXPORT_RECORD, asdict(record))
        write_text(partial / "README.md", card(target, trained, record, _scores_of(config, record.checkpoint.sha256)))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB, {verified}")


def _sample(config: Config) -> list[tuple[str, str]]:
    """Read the text that `input` names, without references, or else the first pairs of the validation set."""
    sides = [config.data_folder / f"valid.{each}" for each in config.data.languages]
    pairs: Iterable[tuple[str, str]] = ()
    if config.input != STANDARD:
        pairs = ((line, "") for line in read_input(config.input))
    elif all(side.is_file() for side in sides):
        pairs = zip(*map(read_lines, sides), strict=False)
    found = list(islice((pair for pair in pairs if pair[0].strip()), SAMPLE))
    if not found:
        where = sides[0] if config.input == STANDARD else config.input
        raise UserError(
            f"{where} is missing or empty, so the export cannot be verified: name a text in the source language with "
            "input=FILE"
        )
    return found


def _texts(model: TorchEngine, lines: Sequence[str]) -> list[str]:
    return [each.text for each in model.translate(lines)]


def _difference(model: TorchEngine, program: Program, lines: Sequence[str], translations: Sequence[str]) -> float:
    """Return the mean difference between the log-probabilities of word pieces."""
    scored = list(zip(model.score(lines, translations), program.score(lines, translations), strict=True))
    return sum(abs(ours.log_probability - theirs) for ours, theirs in scored) / sum(each.tokens for each, _ in scored)


def verify(ours: Sequence[str], theirs: Sequence[str], difference: float, quantization: str) -> str:
    """Return in one line how translations of the same search compare; refuse an export that is like another model."""
    different = [pair for pair in zip(ours, theirs, strict=True) if _known(pair[0]) != _known(pair[1])]
    same = len(ours) - len(different)
    found = (
        f"{same:,} of {len(ours):,} translations identical ({same / len(ours):.1%}), "
        f"log-probabilities of word pieces differ by {difference:.1e}"
    )
    allowed = max(1, round(len(ours) * (1 - MIN_IDENTICAL[quantization])))
    if len(different) > allowed or not difference <= MAX_DIFFERENCE[quantization]:
        example = "".join(f"; {one!r} became {other!r}" for one, other in different[:1])
        raise UserError(
            f"the export was deleted because it does not translate as the model does: {found}{example}. "
            "Train longer if the model has seen few steps (ties are common then), or try another export.target"
        )
    return found


def _known(text: str) -> list[str]:
    """Return the words of a translation, but for unknown ones, which some programs leave out."""
    return text.replace(UNKNOWN_MARK, " ").split()


def _quality(config: Config, model: Sequence[str], export: Sequence[str], references: Sequence[str]) -> str:
    """Compare the BLEU of the model, searched as `eval` does, with that of the export, searched as its users do."""
    bleu = make_bleu(bleu_tokenizer(config.data.target_lang, config.evaluation.bleu_tokenizer))
    ours, theirs = (bleu.corpus_score(texts, [references]).score for texts in (model, export))
    return f"BLEU {theirs:.2f} instead of {ours:.2f} ({theirs - ours:+.2f})"


def _scores_of(config: Config, weights: str) -> list[EvaluationRecord]:
    """Return the scores of the weights with a checksum alone, not in an ensemble."""
    records = map(read_evaluation, sorted(RunLayout(config.run_folder).evaluation.rglob("*.json")))
    return [each for each in records
            if each.checkpoint and not each.checkpoint.ensemble and each.checkpoint.sha256 == weights]  # fmt: skip
