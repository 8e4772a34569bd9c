"""`nmt eval`: translate splits of the prepared data and score them."""

from contextlib import ExitStack
from pathlib import Path

from nmt.compute import distributed
from nmt.config.decoding import MBR
from nmt.config.tree import Config
from nmt.data.prepared import require_text
from nmt.data.references import alignments_of
from nmt.decoding.load import check_languages, load_engine
from nmt.evaluation.bleu import check_tokenizers
from nmt.evaluation.comet import find_checkpoint
from nmt.evaluation.comet import load as load_comet
from nmt.evaluation.evaluate import evaluate
from nmt.evaluation.record import EvaluationRecord, write_evaluation
from nmt.evaluation.split import read_split
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
            splits = [read_split(config.data_folder, config.data, name) for name in names]
            loaded = load_engine(config, machine)
            check_languages(loaded, config)
            # what else may fail, before hours of translation
            check_tokenizers(config, names)
            if config.evaluation.comet:
                load_comet(find_checkpoint(config.evaluation.comet))
            for split in splits:
                alignments_of(split.folder, split.name)
            tracker = stack.enter_context(
                Tracker(services=open_services(config, None) if distributed.is_main() else [])
            )
        for split in splits:
            translations, record = evaluate(loaded, split, config, machine)
            if distributed.is_main():
                folder = scores_folder(config)
                write_text(hypotheses_file(folder, split.name), "".join(f"{line}\n" for line in translations))
                write_evaluation(scores_file(folder, split.name), record)
                _print(record, loaded.path.name, folder)
                name = (folder / split.name).relative_to(RunLayout(config.run_folder).evaluation)
                scores = {key: each.score for key, each in record.scores.items()}
                tracker.log(str(name), loaded.checkpoint.step, **scores)


def _print(record: EvaluationRecord, model: str, folder: Path) -> None:
    print(
        f"{record.split}: {record.sentences:,} sentences in {record.seconds:.1f} s by {model}, "
        f"perplexity {record.perplexity:.2f}; scores are in {scores_file(folder, record.split)}"
    )
    for line in record.remarks():
        print(line)
    width = max(map(len, record.scores), default=0)
    for name, score in record.scores.items():
        is_maximised = name.startswith("chrf") and record.decoding and record.decoding.strategy == MBR
        caution = "  (the search maximised chrf, so judge it by other metrics)" if is_maximised else ""
        print(f"{name:<{max(width, 10) + 1}}{score.score:6.2f}  {score.signature}{caution}", flush=True)
