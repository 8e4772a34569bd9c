"""`nmt export`: make a trained model into what other programs use, and make sure that it translates the same."""

from dataclasses import asdict, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt import __version__
from nmt.compute.machine import prepare_machine
from nmt.config.compose import from_yaml
from nmt.config.schema import Config, DecodingConfig
from nmt.data.sources.files import read_lines
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.engine import Engine
from nmt.decoding.load_engine import describe_checkpoint
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.export import ctranslate2, huggingface
from nmt.export.card import Facts, card
from nmt.export.marian_engine import MarianEngine, check_tokenizer
from nmt.export.record import RECORD
from nmt.export.verify import Quality, Verification, accept, compare_quality, verify
from nmt.runs import checkpoint_files as checkpoint_format
from nmt.runs.checkpoints import Checkpoint, load, resolve
from nmt.runs.layout import SETTINGS, RunLayout
from nmt.storage.files import read_json, replacing_folder, write_json, write_text
from nmt.text.tokenizer import Tokenizer

CPU = torch.device("cpu")


class Sample(NamedTuple):
    """Sentences to compare translations of."""

    lines: list[str]
    references: list[str]
    """Their translations, if they are of the development set; else none."""


def run(config: Config) -> None:
    """Export the checkpoint; nothing is left behind unless it was compared with the model and accepted."""
    prepare_machine(replace(config.runtime, device="cpu", precision="fp32"))
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    sample = _sample(config)
    trained = from_yaml(checkpoint.config_text)
    model, tokenizer = load_model(checkpoint, trained.model, CPU)
    usual = TorchEngine([model], tokenizer, _beam_search(config), CPU)
    with replacing_folder(config.export_folder) as partial:
        _write(partial, config, trained, checkpoint, tokenizer)
        native = _searching_alike(usual, config, trained)
        found = verify(native, _open(partial, config, native, sample.lines), sample.lines)
        accept(found, config.export.quantization)
        quality = _quality(usual, native, found, sample)
        record = _record(config, trained, checkpoint, found, quality)
        write_text(partial / SETTINGS, checkpoint.config_text)
        write_text(partial / "README.md", card(_facts(partial, config, trained, tokenizer, record)))
        write_json(partial / RECORD, record | {"files": sorted(file.name for file in partial.iterdir())})
    print(f"{config.export_folder}: {record['verified']['said']}")


def _beam_search(config: Config) -> DecodingConfig:
    """Return the search that `eval` scores with, as far as all exports can do it: one model, no sampling."""
    return replace(config.decoding, nbest=1, strategy="beam", ensemble=[])


def _searching_alike(usual: TorchEngine, config: Config, trained: Config) -> TorchEngine:
    """Return the model with the search that the export will be used with."""
    if config.export.target != "huggingface":
        return usual
    longest = _longest(config, trained)
    search = replace(usual.config, alpha=0.0, extra_length=longest)
    native = TorchEngine(usual.models, usual.tokenizer, search, CPU)
    native.longest_target = min(native.longest_target, longest)
    return native


def _longest(config: Config, trained: Config) -> int:
    """Return the most word pieces of a translation for Hugging Face, which has one limit for all sentences."""
    return min(trained.data.max_pieces + 1 + config.decoding.extra_length, huggingface.POSITIONS - 1)


def _quality(usual: TorchEngine, native: TorchEngine, found: Verification, sample: Sample) -> Quality | None:
    """Compare the scores of the model, searched as `eval` does, with those of the export; None without references."""
    if not sample.references:
        return None
    scored = found.ours if native is usual else [each.text for each in usual.translate(sample.lines)]
    return compare_quality(scored, found.theirs, sample.references)


def _sample(config: Config) -> Sample:
    """Read the text that is named, without references, else the first pairs of the development set."""
    source = config.data_folder / f"valid.{config.data.source_lang}"
    target = config.data_folder / f"valid.{config.data.target_lang}"
    path = source if config.input == "-" else Path(config.input)
    if not path.is_file():
        raise UserError(
            f"there is no {path} to verify the export with: name a text in the source language with input=FILE"
        )
    known = config.input == "-" and target.is_file()
    pairs = zip(read_lines(path), read_lines(target) if known else repeat(""), strict=False)
    chosen = list(islice((pair for pair in pairs if pair[0].strip()), config.export.sample))
    if not chosen:
        raise UserError(f"{path} is empty, so the export cannot be verified: name another text with input=FILE")
    return Sample([line for line, _ in chosen], [reference for _, reference in chosen] if known else [])


def _write(partial: Path, config: Config, trained: Config, checkpoint: Checkpoint, tokenizer: Tokenizer) -> None:
    if config.export.target == "ctranslate2":
        ctranslate2.write(partial, trained.model, checkpoint.weights, tokenizer, config.export.quantization)
    elif config.export.target == "huggingface":
        languages = trained.data.source_lang, trained.data.target_lang
        search = huggingface.generation(config.decoding.beam, _longest(config, trained))
        huggingface.write(partial, trained.model, checkpoint.weights, tokenizer, languages, search)
    else:
        checkpoint_format.write(
            partial,
            step=checkpoint.step,
            weights=checkpoint.weights,
            trainer=None,
            tokenizer_files=checkpoint.tokenizer_files,
            config_text=checkpoint.config_text,
            valid=checkpoint.meta.valid,
        )


def _open(partial: Path, config: Config, native: TorchEngine, lines: list[str]) -> Engine:
    """The export as those who get it will load it."""
    if config.export.target == "ctranslate2":
        positions = ctranslate2.positions(native.models[0].config)
        return CTranslate2Engine(partial, native.config, CPU, torch.get_num_threads(), longest=positions)
    if config.export.target == "huggingface":
        check_tokenizer(partial, native.tokenizer, lines)
        return MarianEngine(partial, native.tokenizer, native.config)
    saved = load(partial)
    model, tokenizer = load_model(saved, from_yaml(saved.config_text).model, CPU)
    return TorchEngine([model], tokenizer, native.config, CPU)


def _record(
    config: Config, trained: Config, checkpoint: Checkpoint, found: Verification, quality: Quality | None
) -> dict[str, Any]:
    checked = "verified" if config.export.quantization == "float32" else f"rounded to {config.export.quantization}"
    return {
        "nmt": __version__,
        "target": config.export.target,
        "quantization": config.export.quantization,
        "languages": [trained.data.source_lang, trained.data.target_lang],
        "positions": ctranslate2.positions(trained.model),
        "checkpoint": describe_checkpoint(checkpoint),
        "verified": {
            "sentences": found.sentences,
            "same": found.same,
            "log_probability_difference": found.difference,
            "quality": quality and asdict(quality),
            "said": "; ".join([f"{checked}, {found}", *([str(quality)] if quality else [])]),
        },
    }


def _facts(partial: Path, config: Config, trained: Config, tokenizer: Tokenizer, record: dict[str, Any]) -> Facts:
    manifest = config.data_folder / "manifest.json"
    reports = [read_json(path) for path in sorted(RunLayout(config.run_folder).evaluation.rglob("*.json"))]
    return Facts(
        target=config.export.target,
        trained=trained,
        vocabularies=(tokenizer.source_size, tokenizer.target_size),
        record=record,
        manifest=read_json(manifest) if manifest.is_file() else None,
        evaluations=[each for each in reports if _is_of(each, record)],
        decoding=_beam_search(config),
        size=sum(file.stat().st_size for file in partial.iterdir()),
        licence=config.export.licence,
    )


def _is_of(report: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether an evaluation is of the exported weights alone, computed by the model or by an export of this kind."""
    scored = report.get("checkpoint", {})
    by_model = report.get("engine", "torch") == "torch"
    by_export = report.get("engine") == record["target"] and scored.get("quantization") == record["quantization"]
    alone = scored.get("sha256") == record["checkpoint"]["sha256"] and not scored.get("ensemble")
    return alone and (by_model or by_export)
