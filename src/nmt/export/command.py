"""`nmt export`: convert a trained model for other programs, and check that it translates the same."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, repeat

import torch

from nmt import __version__
from nmt.compute.machine import Machine, prepare_machine
from nmt.config import registry
from nmt.config.decoding import DecodingConfig
from nmt.config.folders import expanded
from nmt.config.saved import from_yaml, without_folders
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu
from nmt.evaluation.record import EvaluationRecord, read_evaluation
from nmt.export.record import ExportRecord, card
from nmt.export.target import Reader, Target, TrainedModel, export, searching_as_users
from nmt.model.backends.chosen import choose
from nmt.runs.checkpoint import CheckpointRecord, load
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import EXPORT_RECORD, SETTINGS, RunLayout, export_folder
from nmt.storage.files import replacing_folder, write_text
from nmt.text.lines import read_lines
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
    folder = export_folder(config)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / EXPORT_RECORD).is_file():
        raise UserError(f"{folder} exists and is no export: name another export.folder")
    target: Target = registry.load("export.target", config.export.target)
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    text = without_folders(checkpoint.config_text)
    settings = from_yaml(text)
    lines, references = _sample(config)
    choose(Machine(CPU, torch.float32), kernels=config.runtime.kernels, trains=False)
    model, tokenizer = load_model(checkpoint, settings.model, CPU)
    trained = TrainedModel(settings, checkpoint.weights, tokenizer, _beam_search_of(config), config.export.quantization)
    engine = TorchEngine([model], tokenizer, trained.decoding, CPU)
    with replacing_folder(folder.resolve()) as partial:
        export(target, partial, trained)
        program, searching = target.read(partial, trained), searching_as_users(target, engine, trained)
        ours, theirs = _texts(searching, lines), program.translate(lines)
        gap = _gap(searching, program, lines, ours)
        verified = verify(ours, theirs, gap, trained.quantization)
        if references:
            usual = ours if searching is engine else _texts(engine, lines)
            verified += f"; {_quality(config, usual, theirs, references)}"
        record = ExportRecord(
            nmt=__version__,
            target=config.export.target,
            quantization=trained.quantization,
            languages=(settings.data.source_lang, settings.data.target_lang),
            positions=trained.positions,
            checkpoint=CheckpointRecord.of(checkpoint.meta),
            origin=checkpoint.meta.origin,
            verified=verified,
        )
        write_text(partial / SETTINGS, text)
        write_text(partial / "README.md", card(target, trained, record, [*_evaluations(config, record.checkpoint)]))
        record.write(partial)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB, {verified}")


def _beam_search_of(config: Config) -> DecodingConfig:
    """Return the search that `eval` scores with, reduced to what every export can do: one model and a plain beam."""
    usual = config.decoding
    return DecodingConfig(
        beam=usual.beam, alpha=usual.alpha, extra_length=usual.extra_length, batch_tokens=usual.batch_tokens
    )


def _sample(config: Config) -> tuple[list[str], list[str]]:
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


def _texts(model: TorchEngine, lines: Sequence[str]) -> list[str]:
    return [each.text for each in model.translate(lines)]


def _gap(model: TorchEngine, program: Reader, lines: Sequence[str], translations: Sequence[str]) -> float:
    """Return the mean difference between the log-probabilities of word pieces."""
    scored = list(zip(model.score(lines, translations), program.score(lines, translations), strict=True))
    return sum(abs(one.log_probability - other) for one, other in scored) / sum(one.tokens for one, _ in scored)


def verify(ours: Sequence[str], theirs: Sequence[str], gap: float, quantization: str) -> str:
    """Return in one line how translations of the same search compare; refuse an export that is like another model."""
    different = [pair for pair in zip(ours, theirs, strict=True) if _known(pair[0]) != _known(pair[1])]
    same = len(ours) - len(different)
    found = (
        f"{same:,} of {len(ours):,} translations identical ({same / len(ours):.1%}), "
        f"log-probabilities of word pieces differ by {gap:.1e}"
    )
    allowed = max(1, round(len(ours) * (1 - MIN_IDENTICAL[quantization])))
    if len(different) > allowed or not gap <= MAX_DIFFERENCE[quantization]:
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


def _evaluations(config: Config, checkpoint: CheckpointRecord) -> Iterator[EvaluationRecord]:
    """Yield the scores of the exported weights alone."""
    for file in sorted(RunLayout(config.run_folder).evaluation.rglob("*.json")):
        found = read_evaluation(file)
        if found.checkpoint and not found.checkpoint.ensemble and found.checkpoint.sha256 == checkpoint.sha256:
            yield found
