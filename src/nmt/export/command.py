"""`nmt export`: convert a trained model for other programs, and check that it translates the same."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path

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
from nmt.export.card import card
from nmt.export.destination import export_folder
from nmt.export.record import ExportRecord
from nmt.export.target import Target, TrainedModel, positions
from nmt.export.verify import verify
from nmt.model.backends.chosen import choose
from nmt.runs.checkpoint import CheckpointRecord, load
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import EXPORT_RECORD, SETTINGS, RunLayout
from nmt.storage.files import replacing_folder, write_text
from nmt.text.lines import read_lines

CPU = torch.device("cpu")
SAMPLE = 200
"""Sentences of the development set whose translations must agree before the export is complete."""


def run(config: Config) -> None:
    """Export the checkpoint and print how it compares with the model."""
    prepare_machine(replace(config.runtime, device="cpu"))
    folder = export_folder(config)
    record = export_checkpoint(config)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB, {record.verified}")


def export_checkpoint(config: Config) -> ExportRecord:
    """Export the checkpoint that the settings name; leave nothing behind unless the export passes its comparison."""
    export, folder = config.export, _destination(config)
    target: Target = registry.load("export.target", export.target)
    loaded = load(resolve(config.run_folder, config.checkpoint))
    checkpoint = replace(loaded, config_text=without_folders(loaded.config_text))
    lines, references = _sample(config)
    settings = from_yaml(checkpoint.config_text)
    choose(Machine(CPU, torch.float32), kernels=config.runtime.kernels, trains=False)
    model, tokenizer = load_model(checkpoint, settings.model, CPU)
    target.check(settings, tokenizer)
    trained = TrainedModel(checkpoint, settings, tokenizer, _beam_search_of(config), export.quantization)
    engine = TorchEngine([model], tokenizer, trained.decoding, CPU)
    with replacing_folder(folder) as partial:
        target.write(partial, trained)
        native = target.native(engine, trained)
        found = verify(native, target.read(partial, trained), lines, export.quantization)
        verified = str(found)
        if references:
            usual = found.ours if native is engine else [each.text for each in engine.translate(lines)]
            verified += f"; {_quality(config, usual, found.theirs, references)}"
        record = ExportRecord(
            nmt=__version__,
            target=export.target,
            quantization=export.quantization,
            languages=(settings.data.source_lang, settings.data.target_lang),
            positions=positions(settings.model),
            checkpoint=CheckpointRecord.of(checkpoint.meta),
            origin=checkpoint.meta.origin,
            verified=verified,
        )
        write_text(partial / SETTINGS, checkpoint.config_text)
        evaluations = [each for each in _evaluations(config) if _is_of(each, record)]
        write_text(partial / "README.md", card(target, trained, record, evaluations))
        record.write(partial)
    return record


def _destination(config: Config) -> Path:
    """Return the folder to write the export to, without links; refuse one that holds anything but an earlier export."""
    folder = export_folder(config)
    try:
        path = folder.resolve()
        if any(inside.resolve().is_relative_to(path) for inside in (config.run_folder, Path())):
            raise UserError(f"{folder} contains the run or the current folder: name another export.folder")
        is_free = not any(path.iterdir()) if path.is_dir() else not path.exists()
        if not (is_free or (path / EXPORT_RECORD).is_file()):
            raise UserError(f"{folder} exists and is no export: name another export.folder")
    except (OSError, RuntimeError) as error:  # a folder that may not be read, or links in a circle
        raise UserError(f"cannot read {folder}: {error}. Name another export.folder") from error
    return path


def _beam_search_of(config: Config) -> DecodingConfig:
    """Return the search that `eval` scores with, reduced to what every export can do: one model and a plain beam."""
    usual = config.decoding
    return DecodingConfig(
        beam=usual.beam, alpha=usual.alpha, extra_length=usual.extra_length, batch_tokens=usual.batch_tokens
    )


def _sample(config: Config) -> tuple[list[str], list[str]]:
    """Read the text that `input` names, without references, or else the first pairs of the development set."""
    source = config.data_folder / f"valid.{config.data.source_lang}"
    target = config.data_folder / f"valid.{config.data.target_lang}"
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


def _quality(config: Config, model: Sequence[str], export: Sequence[str], references: Sequence[str]) -> str:
    """Compare the BLEU of the model, searched as `eval` does, with that of the export, searched as its users do."""
    bleu = make_bleu(bleu_tokenizer(config.data.target_lang, config.evaluation.bleu_tokenizer))
    ours, theirs = (bleu.corpus_score(texts, [references]).score for texts in (model, export))
    return f"BLEU {theirs:.2f} instead of {ours:.2f} ({theirs - ours:+.2f})"


def _evaluations(config: Config) -> Iterator[EvaluationRecord]:
    """Yield the scores of the run; an export does not fail because of a file that has none."""
    for file in sorted(RunLayout(config.run_folder).evaluation.rglob("*.json")):
        try:
            yield read_evaluation(file)
        except UserError as error:
            print(f"warning: {error}", file=sys.stderr)


def _is_of(evaluation: EvaluationRecord, record: ExportRecord) -> bool:
    """Return whether the exported weights alone were scored, by the model itself or by an export of this kind."""
    scored = evaluation.checkpoint
    if scored is None or scored.ensemble or scored.sha256 != record.checkpoint.sha256:
        return False
    by_export = (evaluation.engine, scored.quantization) == (record.target, record.quantization)
    return evaluation.engine == "torch" or by_export
