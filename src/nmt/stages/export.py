"""`nmt export`: make a trained model into what other programs use, and make sure that it translates the same."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from nmt import __version__
from nmt.config.compose import from_yaml
from nmt.config.schema import Config
from nmt.data.readers import read_lines
from nmt.decoding.deployed import Deployed
from nmt.decoding.engine import Engine
from nmt.decoding.translate import Translator, load_model
from nmt.errors import UserError
from nmt.export import ctranslate2, huggingface
from nmt.export.card import Facts, card
from nmt.export.marian import Marian, check_tokenizer
from nmt.export.record import RECORD
from nmt.export.verify import Verification, accept, verify
from nmt.files import read_json, replacing_folder, write_json, write_text
from nmt.machine import prepare_machine
from nmt.runs import format as checkpoint_format
from nmt.runs.checkpoints import Checkpoint, load, resolve
from nmt.stages.engines import describe_checkpoint
from nmt.text.tokenizer import Tokenizer

CPU = torch.device("cpu")


def run(config: Config) -> None:
    """Export the checkpoint; nothing is left behind unless it was verified."""
    prepare_machine(replace(config.runtime, device="cpu", precision="fp32"))
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    lines = _sample(config)
    trained = from_yaml(checkpoint.config_text)
    model, tokenizer = load_model(checkpoint, trained.model, CPU)
    target, numbers, folder = config.export.target, config.export.quantization, config.export_folder
    with replacing_folder(folder) as partial:
        _write(partial, config, trained, checkpoint, tokenizer)
        # Hugging Face's search ranks by another length penalty; without a beam there is none.
        decoding = replace(config.decoding, nbest=1, strategy="beam", ensemble=[])
        decoding = replace(decoding, beam=1) if target == "huggingface" else decoding
        native = Translator([model], tokenizer, decoding, CPU)
        found = verify(native, _open(partial, config, native, lines), lines)
        accept(found, numbers)
        record = _record(config, trained, checkpoint, found)
        write_text(partial / checkpoint_format.SETTINGS, checkpoint.config_text)
        write_text(partial / "README.md", card(_facts(partial, config, trained, tokenizer, record)))
        write_json(partial / RECORD, record | {"files": sorted(file.name for file in partial.iterdir())})
    print(f"{folder}: verified, {found}")


def _sample(config: Config) -> list[str]:
    """Lines to verify with: of the text that is named, else of the development set."""
    path = config.data_folder / f"valid.{config.data.source_lang}" if config.input == "-" else Path(config.input)
    if not path.is_file():
        raise UserError(
            f"there is no {path} to verify the export with: name a text in the source language with input=FILE"
        )
    lines = list(islice((line for line in read_lines(path) if line.strip()), config.export.sample))
    if not lines:
        raise UserError(f"{path} is empty, so the export cannot be verified: name another text with input=FILE")
    return lines


def _write(partial: Path, config: Config, trained: Config, checkpoint: Checkpoint, tokenizer: Tokenizer) -> None:
    if config.export.target == "ctranslate2":
        ctranslate2.write(partial, trained.model, checkpoint.weights, tokenizer, config.export.quantization)
    elif config.export.target == "huggingface":
        languages = trained.data.source_lang, trained.data.target_lang
        generation = {
            "num_beams": config.decoding.beam,
            "length_penalty": config.decoding.alpha,
            "max_length": huggingface.POSITIONS,
        }
        huggingface.write(partial, trained.model, checkpoint.weights, tokenizer, languages, generation)
    else:
        checkpoint_format.write(
            partial,
            step=checkpoint.step,
            weights=checkpoint.weights,
            trainer=None,
            tokenizer_files=checkpoint.tokenizer_files,
            config_text=checkpoint.config_text,
            valid=checkpoint.meta["valid"],
        )


def _open(partial: Path, config: Config, native: Translator, lines: list[str]) -> Engine:
    """The export as those who get it will load it."""
    if config.export.target == "ctranslate2":
        positions = ctranslate2.positions(native.models[0].config)
        return Deployed(partial, native.config, CPU, torch.get_num_threads(), longest=positions)
    if config.export.target == "huggingface":
        check_tokenizer(partial, native.tokenizer, lines)
        return Marian(partial, native.tokenizer, native.config)
    saved = load(partial)
    model, tokenizer = load_model(saved, from_yaml(saved.config_text).model, CPU)
    return Translator([model], tokenizer, native.config, CPU)


def _record(config: Config, trained: Config, checkpoint: Checkpoint, found: Verification) -> dict[str, Any]:
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
            "said": str(found),
        },
    }


def _facts(partial: Path, config: Config, trained: Config, tokenizer: Tokenizer, record: dict[str, Any]) -> Facts:
    manifest = config.data_folder / "manifest.json"
    reports = [read_json(path) for path in sorted((config.run_folder / "eval").glob("*.json"))]
    ours = [each for each in reports if each.get("checkpoint", {}).get("sha256") == record["checkpoint"]["sha256"]]
    return Facts(
        target=config.export.target,
        trained=trained,
        vocabularies=(tokenizer.source_size, tokenizer.target_size),
        record=record,
        manifest=read_json(manifest) if manifest.is_file() else None,
        evaluations=ours,
        size=sum(file.stat().st_size for file in partial.iterdir()),
        licence=config.export.licence,
    )
