"""`nmt eval`: translate splits of the prepared data and score them."""

from dataclasses import asdict
from typing import Any

from nmt import distributed
from nmt.config.compose import from_yaml
from nmt.config.schema import Config
from nmt.decoding.translate import Translator, load_model
from nmt.errors import UserError
from nmt.evaluation.evaluate import Evaluation, evaluate, read_split, write_evaluation
from nmt.machine import Machine
from nmt.runs.checkpoints import Checkpoint, load, resolve


def run(config: Config) -> None:
    """Score a checkpoint: its model and tokenizer come from itself, text and decoding from the settings."""
    with distributed.session(config.runtime) as machine:
        languages = config.data.source_lang, config.data.target_lang
        splits = [read_split(config.data_folder, split, languages) for split in config.evaluation.splits]
        checkpoint = load(resolve(config.run_folder, config.checkpoint))
        trained = from_yaml(checkpoint.config_text)
        _check_languages(checkpoint, trained, config)
        model, tokenizer = load_model(checkpoint, trained.model, machine.device)
        translator = Translator([model], tokenizer, config.decoding, *machine)
        for split in splits:
            evaluation = evaluate(translator, split, config.data.target_lang)
            if distributed.is_main():
                folder = config.run_folder / "eval"
                write_evaluation(folder, split.name, evaluation, _about(config, checkpoint, machine))
                _report(split.name, evaluation, checkpoint)


def _check_languages(checkpoint: Checkpoint, trained: Config, config: Config) -> None:
    pairs = [f"{each.data.source_lang}-{each.data.target_lang}" for each in (trained, config)]
    if pairs[0] != pairs[1]:
        raise UserError(
            f"{checkpoint.path} translates {pairs[0]}, but the settings say {pairs[1]}: "
            "use the experiment= that it was trained with, or set data.source_lang and data.target_lang"
        )


def _about(config: Config, checkpoint: Checkpoint, machine: Machine) -> dict[str, Any]:
    return {
        "corpus": config.data.corpus,
        "languages": [config.data.source_lang, config.data.target_lang],
        "decoding": asdict(config.decoding),
        "machine": str(machine),
        "processes": distributed.world_size(),
        "checkpoint": {
            "name": checkpoint.path.name,
            "path": str(checkpoint.path),
            "step": checkpoint.step,
            "sha256": checkpoint.meta["files"]["model.safetensors"],
        },
    }


def _report(split: str, evaluation: Evaluation, checkpoint: Checkpoint) -> None:
    print(
        f"{split}: {len(evaluation.hypotheses):,} sentences in {evaluation.seconds:.1f} s "
        f"({evaluation.sentences_per_second:,.1f} a second) by {checkpoint.path}; "
        f"perplexity of the references {evaluation.perplexity:.2f}"
    )
    for name, score in evaluation.scores.items():
        print(f"{name:<11}{score.score:6.2f}  {score.signature}", flush=True)
