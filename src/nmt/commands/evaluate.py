"""`nmt eval`: translate splits of the prepared data and score them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.saved import flatten
from nmt.config.schema import Config
from nmt.decoding.load_engine import LoadedEngine, check_languages, load_engine
from nmt.evaluation.evaluate import Evaluation, Split, evaluate, read_split, write_evaluation
from nmt.runs.layout import RunLayout
from nmt.runs.scores import scores_folder
from nmt.runs.tracking import Scored, tell_scored

SAMPLES = 100
"""Translations that others are shown."""


def run(config: Config) -> None:
    """Score a checkpoint or an export: model and tokenizer come from it, text and decoding from the settings."""
    with distributed.session(config.runtime) as machine:
        languages = config.data.source_lang, config.data.target_lang
        with distributed.together():
            splits = [read_split(config.data_folder, split, languages) for split in config.evaluation.splits]
            loaded = load_engine(config, machine)
            check_languages(loaded, config)
        for split in splits:
            evaluation = evaluate(loaded.engine, split, config.data.target_lang)
            if distributed.is_main():
                folder = scores_folder(config)
                write_evaluation(folder, split.name, evaluation, _about(config, loaded, machine))
                _report(split.name, evaluation, loaded, folder)
                _tell(config, split, evaluation, loaded)


def _about(config: Config, loaded: LoadedEngine, machine: Machine) -> dict[str, Any]:
    return {
        "corpus": config.data.corpus,
        "languages": [config.data.source_lang, config.data.target_lang],
        "decoding": asdict(config.decoding),
        "engine": config.engine,
        "machine": str(machine),
        "processes": distributed.world_size(),
        "checkpoint": loaded.checkpoint.as_json(),
    }


def _tell(config: Config, split: Split, evaluation: Evaluation, loaded: LoadedEngine) -> None:
    scored = Scored(
        split=str((scores_folder(config) / split.name).relative_to(RunLayout(config.run_folder).evaluation)),
        step=loaded.checkpoint.step,
        scores={name: score.score for name, score in evaluation.scores.items()},
        signatures={name: score.signature for name, score in evaluation.scores.items()},
        translations=list(zip(split.sources, evaluation.hypotheses, split.references, strict=True))[:SAMPLES],
        checkpoint=loaded.path.name,
        files=loaded.files,
    )
    settings = flatten(asdict(config))
    tell_scored(config.run_folder, config.tracking, name=config.name, settings=settings, scored=scored)


def _report(split: str, evaluation: Evaluation, loaded: LoadedEngine, folder: Path) -> None:
    print(
        f"{split}: {len(evaluation.hypotheses):,} sentences in {evaluation.seconds:.1f} s "
        f"({evaluation.sentences_per_second:,.1f} a second) by {loaded.path}; "
        f"perplexity of the references {evaluation.perplexity:.2f} (nll {evaluation.nll:.4f}); "
        f"written to {folder / split}.json"
    )
    for name, score in evaluation.scores.items():
        print(f"{name:<11}{score.score:6.2f}  {score.signature}", flush=True)
