"""`nmt export`: convert a trained model for other programs, and check that it translates the same."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from nmt import __version__
from nmt.compute.machine import Machine, prepare_machine
from nmt.config import registry
from nmt.config.decoding import DecodingConfig
from nmt.config.saved import from_yaml, without_folders
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.evaluation.record import EvaluationRecord, read_evaluation
from nmt.export.record import ExportRecord, card
from nmt.export.target import Target, TrainedModel, export, searching_as_users
from nmt.export.verify import quality, read_sample, verify
from nmt.model.backends.chosen import choose
from nmt.runs.checkpoint import CheckpointRecord, load
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import EXPORT_RECORD, SETTINGS, RunLayout, export_folder
from nmt.storage.files import replacing_folder, write_text

CPU = torch.device("cpu")


def run(config: Config) -> None:
    """Export the checkpoint and print how it compares with the model."""
    prepare_machine(replace(config.runtime, device="cpu"))
    folder = export_folder(config)
    verified = export_checkpoint(config)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB, {verified}")


def export_checkpoint(config: Config) -> str:
    """Export the checkpoint that the settings name, and return how it compares with the model.

    Nothing is left behind unless the export passes its comparison.
    """
    folder = _destination(config)
    target: Target = registry.load("export.target", config.export.target)
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    text = without_folders(checkpoint.config_text)
    settings = from_yaml(text)
    lines, references = read_sample(config)
    choose(Machine(CPU, torch.float32), kernels=config.runtime.kernels, trains=False)
    model, tokenizer = load_model(checkpoint, settings.model, CPU)
    trained = TrainedModel(settings, checkpoint.weights, tokenizer, _beam_search_of(config), config.export.quantization)
    engine = TorchEngine([model], tokenizer, trained.decoding, CPU)
    with replacing_folder(folder) as partial:
        export(target, partial, trained)
        searching = searching_as_users(target, engine, trained)
        ours, theirs, verified = verify(searching, target.read(partial, trained), lines, trained.quantization)
        if references:
            if searching is not engine:
                ours = [each.text for each in engine.translate(lines)]
            verified += f"; {quality(config, ours, theirs, references)}"
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
        write_text(partial / "README.md", card(target, trained, record, list(_evaluations(config, record))))
        record.write(partial)
    return verified


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


def _evaluations(config: Config, record: ExportRecord) -> Iterator[EvaluationRecord]:
    """Yield the scores of the exported weights alone, translated by the model itself or by an export of this kind."""
    for file in sorted(RunLayout(config.run_folder).evaluation.rglob("*.json")):
        try:
            found = read_evaluation(file)
        except UserError as error:  # an export does not fail because of a file without scores
            print(f"warning: {error}", file=sys.stderr)
            continue
        scored = found.checkpoint
        if scored is None or scored.ensemble or scored.sha256 != record.checkpoint.sha256:
            continue
        if found.engine == "torch" or (found.engine, scored.quantization) == (record.target, record.quantization):
            yield found
