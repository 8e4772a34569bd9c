"""`nmt eval`: translate splits of the prepared data and score them."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.tree import Config
from nmt.data.corpora import split_languages, split_settings
from nmt.data.prepared import require_text
from nmt.data.references import alignments_of
from nmt.decoding.load import LoadedModel, check_languages, load_engine
from nmt.evaluation.bleu import bleu_tokenizer_of
from nmt.evaluation.evaluate import evaluate
from nmt.evaluation.metrics import prepare_metrics
from nmt.evaluation.record import EvaluationRecord, write_evaluation
from nmt.evaluation.split import Split, read_split
from nmt.runs.layout import RunLayout, hypotheses_file, scores_file
from nmt.runs.scores import scores_folder
from nmt.runs.services import open_services
from nmt.runs.tracker import Tracker
from nmt.storage.files import write_text


def run(config: Config) -> None:
    """Score a checkpoint or an export; model and tokenizer come from it, text and decoding from the settings."""
    with distributed.session(config.runtime) as machine, ExitStack() as stack:
        with distributed.together():
            names = config.evaluation.splits
            require_text(config, names)
            splits = [_read_split(config, name) for name in names]
            loaded = load_engine(config, machine)
            check_languages(loaded, config)
            _prepare(config, splits)
            tracker = stack.enter_context(
                Tracker(services=open_services(config, None) if distributed.is_main() else [])
            )
        for split in splits:
            language = split_languages(config.data, split.name)[1]
            translations, scored = evaluate(loaded.engine, split, language, config.evaluation)
            if distributed.is_main():
                folder = scores_folder(config)
                write_text(hypotheses_file(folder, split.name), "".join(f"{line}\n" for line in translations))
                record = _completed(scored, config, loaded, machine)
                write_evaluation(scores_file(folder, split.name), record)
                _print(record, loaded, folder)
                name = (folder / split.name).relative_to(RunLayout(config.run_folder).evaluation)
                scores = {key: each.score for key, each in record.scores.items()}
                tracker.log(str(name), loaded.checkpoint.step, **scores)


def _read_split(config: Config, name: str) -> Split:
    languages, tag = split_languages(config.data, name), split_settings(config.data, name).tag
    return read_split(config.data_folder, name, languages, tag)


def _prepare(config: Config, splits: list[Split]) -> None:
    """Load what metrics need, and the true alignments, so that they fail before hours of translation."""
    for split in splits:
        prepare_metrics(split_languages(config.data, split.name)[1], config.evaluation)
        alignments_of(split.folder, split.name)


def _completed(record: EvaluationRecord, config: Config, loaded: LoadedModel, machine: Machine) -> EvaluationRecord:
    """Return a record with what is the same for all sentences: text, search, machine and checkpoint."""
    return replace(
        record,
        corpus=config.data.corpus,
        languages=split_languages(config.data, record.split),
        bleu_tokenizer=bleu_tokenizer_of(config, record.split),
        decoding=config.decoding,
        machine=str(machine),
        checkpoint=loaded.checkpoint,
    )


def _print(record: EvaluationRecord, loaded: LoadedModel, folder: Path) -> None:
    print(
        f"{record.split}: {record.sentences:,} sentences in {record.seconds:.1f} s by {loaded.path.name}, "
        f"perplexity {record.perplexity:.2f}; scores are in {scores_file(folder, record.split)}"
    )
    for line in record.remarks():
        print(line)
    width = max(map(len, record.scores), default=0)
    for name, score in record.scores.items():
        line = f"{name:<{max(width, 10) + 1}}{score.score:6.2f}  {score.signature}"
        print(f"{line}{_caution(name, loaded.engine.maximises)}", flush=True)


def _caution(metric: str, maximised: str) -> str:
    """Return a warning if the search has maximised this metric, or another one of its family."""
    if not maximised or not metric.startswith(maximised):
        return ""
    return f"  (the search maximised {maximised}, so judge it by other metrics)"
