"""The model card of an export: usage, training data, recipe, scores and licence."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from nmt import __version__
from nmt.config.data import DataConfig, corpora_of
from nmt.config.model import ModelConfig
from nmt.data.sources.hub import is_hub_id
from nmt.estimate.parameters import count_parameters
from nmt.evaluation.record import EvaluationRecord
from nmt.export.record import ExportRecord
from nmt.export.target import Target, TrainedModel


def card(target: Target, trained: TrainedModel, record: ExportRecord, evaluations: Sequence[EvaluationRecord]) -> str:
    """Return the card in Markdown, with the header that model hubs read."""
    config, corpora = trained.settings, corpora_of(trained.settings.data)
    directions = " and ".join(dict.fromkeys(_direction(corpus.settings) for corpus in corpora.values()))
    tags = [corpus.settings for corpus in corpora.values() if corpus.settings.tag]
    blocks = [
        _header(target, [corpus.settings for corpus in corpora.values()]),
        f"# {config.name}: {directions}\n",
        f"A Transformer for translation from {directions}, trained and exported with nmt {__version__}.\n",
        "## Use\n",
        target.usage(config, trained.decoding),
        *(["A sentence may need one of these tags and a space before it:\n"] if tags else []),
        *(f"- `{data.tag}`: {_direction(data)}" for data in tags),
        "\n## Training\n",
        *(f"- {_direction(corpus.settings)}: {_origin(corpus.settings)}" for corpus in corpora.values()),
        f"- {_shape(config.model, trained)}",
        *([f"- begun from another model: {record.origin.summary}"] if record.origin else []),
        "- all settings: config.yaml\n",
        "## Scores\n",
        *(_scores(evaluations) if evaluations else ["None when it was exported."]),
        "\n## This export\n",
        f"- format: {record.target}, {record.quantization}",
        f"- from checkpoint {record.checkpoint.name} of step {record.checkpoint.step}, "
        f"weights' SHA-256 {record.checkpoint.sha256}",
        f"- compared with the model: {record.verified}",
        *([f"- search: {target.note}"] if target.note else []),
        "\n## Licence\n\nNot stated.",
    ]
    return "\n".join(blocks) + "\n"


def _header(target: Target, corpora: Sequence[DataConfig]) -> str:
    """Return the YAML that model hubs read; the dumper quotes what YAML would misread, such as the language `no`."""
    header: dict[str, object] = {
        "language": list(dict.fromkeys(each for data in corpora for each in (data.source_lang, data.target_lang))),
        "pipeline_tag": "translation",
        "library_name": target.library,
        "tags": ["translation", "transformer", "nmt"],
    }
    if datasets := [data.hub_dataset for data in corpora if data.source == "hub" and is_hub_id(data)]:
        header["datasets"] = list(dict.fromkeys(datasets))
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return f"---\n{text}---\n"


def _direction(data: DataConfig) -> str:
    return f"{data.source_lang} to {data.target_lang}"


def _origin(data: DataConfig) -> str:
    """Name the training text, without folders of this machine, which may be private."""
    if data.source == "hub":
        dataset = data.hub_dataset if is_hub_id(data) else f"a local copy named {Path(data.hub_dataset).name}"
        return f"{dataset} ({data.hub_config}), revision {data.hub_revision}, split {', '.join(data.train)}"
    return f"{data.source}: {', '.join(Path(name).name for name in data.train) or data.corpus}"


def _shape(model: ModelConfig, trained: TrainedModel) -> str:
    sizes = trained.tokenizer.source_size, trained.tokenizer.target_size
    return (
        f"{count_parameters(model, *sizes).total:,} parameters, {sizes[1]:,} word pieces, {model.positions} positions, "
        f"{model.norm_placement}-norm"
    )


def _scores(evaluations: Sequence[EvaluationRecord]) -> Iterator[str]:
    """Yield the rows of a table."""
    yield from ("| corpus | split | score | | translated by | signature |", "|---|---|---|---|---|---|")
    for each in evaluations:
        translator = "nmt" if each.engine == "torch" else each.engine
        searched = f"{translator}, {each.decoding.in_words}" if each.decoding else translator
        for name, score in each.scores.items():
            cells = (each.corpus, each.split, name, f"{score.score:.2f}", searched)
            yield f"| {' | '.join(cells)} | `{score.signature.replace('|', ' ')}` |"
