"""Export a checkpoint; keep the export only if it translates as the model does."""

import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice, repeat
from pathlib import Path
from typing import NamedTuple

import torch
from sacrebleu.metrics.bleu import BLEU

from nmt import __version__
from nmt.config.folders import expanded
from nmt.config.saved import from_yaml, without_folders
from nmt.config.schema import Config, DecodingConfig
from nmt.data.corpora import training_splits
from nmt.data.filter_counts import FilterCount, filter_counts
from nmt.data.manifest import read_manifest
from nmt.data.records import collect_task, encode_task
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu
from nmt.evaluation.record import EvaluationRecord, read_evaluation
from nmt.features.exports.card import CardFacts, card
from nmt.features.exports.destination import destination
from nmt.features.exports.exporter import Exporter, TrainedModel
from nmt.features.exports.record import ExportRecord, VerificationRecord
from nmt.features.exports.registry import EXPORTERS
from nmt.features.exports.settings import ExportConfig
from nmt.features.exports.sizes import sizes_in_words
from nmt.features.exports.verify import Quality, Verification, accept, compare_quality, verify
from nmt.model.kernels.c.library import use_operations
from nmt.runs.checkpoint_record import CheckpointRecord, origin_of
from nmt.runs.checkpoints import load, resolve
from nmt.runs.layout import SETTINGS, RunLayout
from nmt.storage.files import replacing_folder, write_text
from nmt.text.lines import read_lines

CPU = torch.device("cpu")


class Sample(NamedTuple):
    """Sentences on which the export is compared with the model."""

    lines: list[str]
    references: list[str]
    """Their references; empty if they are not from the development set."""


def export_checkpoint(config: Config) -> ExportRecord:
    """Export the checkpoint that the settings name; leave nothing behind unless the export passes its comparison."""
    exporter, folder = EXPORTERS[config.of(ExportConfig).target], destination(config)
    loaded = load(resolve(config.run_folder, config.checkpoint))
    checkpoint = replace(loaded, config_text=without_folders(loaded.config_text))
    sample = read_sample(config)
    tokenizer_of_bleu = bleu_tokenizer(config.data.target_lang, config.evaluation.bleu_tokenizer)
    bleu = make_bleu(tokenizer_of_bleu) if sample.references else None
    settings = from_yaml(checkpoint.config_text)
    exporter.check(settings.model)
    use_operations(config.runtime.kernels, only=torch.float32)
    model, tokenizer = load_model(checkpoint, settings.model, CPU)
    export = config.of(ExportConfig)
    trained = TrainedModel(checkpoint, settings, tokenizer, beam_search_of(config), export.quantization)
    usual = TorchEngine([model], tokenizer, trained.decoding, CPU)
    with replacing_folder(folder) as partial:
        exporter.write(partial, trained)
        native = exporter.native_engine(usual, trained)
        exported = exporter.open(partial, native, sample.lines)
        verification = verify(native, exported, sample.lines)
        accept(verification, config.of(ExportConfig).quantization)
        if client := exporter.client(partial):
            verification = replace(verification, client=client(sample.lines))
        quality = _compare_quality(usual, native, verification, sample, bleu)
        record = _record(config, exporter, trained, verification, quality)
        write_text(partial / SETTINGS, checkpoint.config_text)
        write_text(partial / "README.md", card(_card_facts(partial, config, exporter, trained, record)))
        record.write(partial)
    return record


def beam_search_of(config: Config) -> DecodingConfig:
    """Return the search that `eval` scores with, reduced to what every export can do: one model and a plain beam."""
    usual = config.decoding
    return DecodingConfig(
        beam=usual.beam, alpha=usual.alpha, extra_length=usual.extra_length, batch_tokens=usual.batch_tokens
    )


def _compare_quality(
    usual: TorchEngine, native: TorchEngine, verification: Verification, sample: Sample, bleu: BLEU | None
) -> Quality | None:
    """Compare the scores of the model, searched as `eval` does, with those of the export; None without references."""
    if bleu is None:
        return None
    same_search = native is usual
    scored = verification.ours if same_search else [each.text for each in usual.translate(sample.lines)]
    return compare_quality(scored, verification.of_users, sample.references, bleu)


def read_sample(config: Config) -> Sample:
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
    chosen = list(islice((pair for pair in pairs if pair[0].strip()), _sample_size(config.of(ExportConfig))))
    if not chosen:
        raise UserError(f"{path} is empty, so the export cannot be verified: name another text with input=FILE")
    return Sample([line for line, _ in chosen], [reference for _, reference in chosen] if has_references else [])


def _sample_size(config: ExportConfig) -> int:
    return config.sample or (1000 if config.quantization == "int8" else 100)


def _record(
    config: Config,
    exporter: Exporter,
    trained: TrainedModel,
    verification: Verification,
    quality: Quality | None,
) -> ExportRecord:
    settings = trained.settings
    return ExportRecord(
        nmt=__version__,
        target=config.of(ExportConfig).target,
        quantization=trained.quantization,
        languages=(settings.data.source_lang, settings.data.target_lang),
        positions=exporter.positions(settings.model),
        checkpoint=CheckpointRecord.of(trained.checkpoint),
        origin=origin_of(trained.checkpoint.meta),
        verified=_verification(verification, quality, trained.quantization),
    )


def _verification(verification: Verification, quality: Quality | None, quantization: str) -> VerificationRecord:
    """Return what is recorded of a comparison with the model."""
    checked = "verified" if quantization == "float32" else f"rounded to {quantization}"
    return VerificationRecord(
        sentences=verification.sentences,
        same=verification.same,
        log_probability_difference=verification.difference,
        quality=None if quality is None else asdict(quality),
        summary="; ".join(str(fact) for fact in (f"{checked}, {verification}", quality) if fact),
    )


def _card_facts(
    partial: Path, config: Config, exporter: Exporter, trained: TrainedModel, record: ExportRecord
) -> CardFacts:
    return CardFacts(
        exporter=exporter,
        trained=trained.settings,
        vocabularies=(trained.tokenizer.source_size, trained.tokenizer.target_size),
        record=record,
        filters=_filters(config, trained.settings),
        evaluations=[each for each in _evaluations(config) if _is_of(each, record)],
        decoding=trained.decoding,
        size=sizes_in_words(partial),
        licence=config.of(ExportConfig).licence,
    )


def _evaluations(config: Config) -> Iterator[EvaluationRecord]:
    """Yield the scores of the run; an export does not fail because of a file that has none."""
    for file in sorted(RunLayout(config.run_folder).evaluation.rglob("*.json")):
        try:
            yield read_evaluation(file)
        except UserError as error:
            print(f"warning: {error}", file=sys.stderr)


def _filters(config: Config, trained: Config) -> dict[str, list[FilterCount]]:
    """Return what the filters dropped from the training text, by corpus; without those that are not prepared here."""
    manifest = read_manifest(config.data_folder)
    return {
        split.corpus: filter_counts(manifest, split.name)
        for split in training_splits(trained.data)
        if {collect_task(split.name), encode_task(split.name)} <= manifest.tasks.keys()
    }


def _is_of(evaluation: EvaluationRecord, record: ExportRecord) -> bool:
    """Return whether the exported weights alone were scored, by the model itself or by an export of this kind."""
    scored = evaluation.checkpoint
    if scored is None or scored.ensemble or scored.sha256 != record.checkpoint.sha256:
        return False
    by_export = (evaluation.engine, scored.quantization) == (record.target, record.quantization)
    return evaluation.engine == "torch" or by_export
