"""The model card of an export: usage, training data, recipe, scores and licence."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from nmt import __version__
from nmt.config.schema import Config, DataConfig, DecodingConfig
from nmt.data.filter_counts import FilterCount
from nmt.data.sources.hub import is_hub_id
from nmt.estimate.parameters import count_parameters, describe_depth
from nmt.evaluation.record import EvaluationRecord
from nmt.features.exports.exporter import Exporter
from nmt.features.exports.record import ExportRecord


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The facts that a card states."""

    exporter: Exporter
    trained: Config
    """The settings that the model was trained with."""
    vocabularies: tuple[int, int]
    """Sizes of the source and the target vocabulary."""
    record: ExportRecord
    filters: Sequence[FilterCount]
    """The pairs that each filter dropped from the training text; empty if the counts are unknown."""
    evaluations: Sequence[EvaluationRecord]
    """The evaluations of the exported checkpoint."""
    decoding: DecodingConfig
    """The search that `eval` uses with the settings of the export."""
    size: str
    """The size of the export and of its large files, in words."""
    licence: str


def card(facts: CardFacts) -> str:
    """Return the card in Markdown, with the header that model hubs read."""
    config, record = facts.trained, facts.record
    source, target = config.data.source_lang, config.data.target_lang
    note = facts.exporter.search_note(facts.decoding)
    blocks = [
        _header(facts),
        f"# {config.name}: {source} to {target}\n",
        f"A Transformer for translation from {source} to {target}, trained and exported with nmt {__version__}.\n",
        "## Use\n",
        facts.exporter.usage(config, facts.decoding),
        "## Training data\n",
        *_data(config.data, facts.filters),
        "## Recipe\n",
        *_recipe(facts),
        "## Scores\n",
        *_scores(facts),
        "## This export\n",
        f"- format: {record.target}, {record.quantization}, {facts.size}",
        f"- from checkpoint {record.checkpoint.name} of step {record.checkpoint.step}, "
        f"weights' SHA-256 {record.checkpoint.sha256}",
        f"- compared with the model: {record.verified.summary}",
        *([f"- search: {note}"] if note else []),
        "",
        "## Licence\n",
        f"{facts.licence or 'Not stated (export.licence was empty).'}",
    ]
    return "\n".join(blocks) + "\n"


def _header(facts: CardFacts) -> str:
    """Return the YAML that model hubs read; the dumper quotes what YAML would misread, such as the language `no`."""
    data = facts.trained.data
    header: dict[str, object] = {
        "language": [data.source_lang, data.target_lang],
        "pipeline_tag": "translation",
        "library_name": facts.exporter.library,
        "tags": ["translation", "transformer", "nmt"],
    }
    if facts.licence:
        header["license"] = facts.licence
    if data.source == "hub" and is_hub_id(data):
        header["datasets"] = [data.hub_dataset]
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return f"---\n{text}---\n"


def _data(data: DataConfig, filters: Sequence[FilterCount]) -> list[str]:
    if data.source == "hub":  # a local path would reveal its owner's folders and help no one else
        dataset = data.hub_dataset if is_hub_id(data) else f"a local copy named {Path(data.hub_dataset).name}"
        origin = f"{dataset} ({data.hub_config}), revision {data.hub_revision}, split {', '.join(data.train)}"
    elif data.source == "files":
        origin = f"the files {', '.join(Path(name).name for name in data.train)}"
    else:
        origin = "the embedded demo grammar"
    lines = [f"- {data.corpus}: {origin}"]
    limits = f"at most {data.max_words} words" if data.max_words else "no limit on words"
    limits += f", at most {data.max_pieces} word pieces per side"
    limits += f", lengths within a factor of {data.max_ratio:g}" if data.max_ratio else ""
    limits += ", no copies" if data.drop_copies else ""
    limits += ", no duplicates" if data.deduplicate else ""
    lines.append(f"- filters: {limits}")
    if filters:
        dropped = ", ".join(f"{each.dropped:,} by {each.name}" for each in filters if each.dropped) or "none"
        lines.append(f"- pairs read: {filters[0].left:,}; dropped: {dropped}; trained on: {filters[-1].left:,}")
    return [*lines, ""]


def _recipe(facts: CardFacts) -> list[str]:
    config, model, training = facts.trained, facts.trained.model, facts.trained.training
    size = count_parameters(model, *facts.vocabularies)
    return [
        f"- {size.total:,} parameters: {describe_depth(model)} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads, {model.positions} positions, {model.norm_placement}-norm "
        f"({model.norm}), {model.activation}",
        f"- {config.tokenizer.model_type} vocabulary of {facts.vocabularies[1]:,} word pieces"
        + (", shared by both languages" if config.tokenizer.joint else " for each language"),
        f"- {training.batch_tokens:,} tokens per side and batch, {training.schedule} schedule with "
        f"{training.warmup_steps:,} steps of warmup, dropout {model.dropout:g}, "
        f"label smoothing {training.label_smoothing:g}, Adam ({training.adam_beta1:g}, {training.adam_beta2:g})",
        *([f"- begun from another model: {facts.record.origin.summary}"] if facts.record.origin else []),
        "- all settings: config.yaml\n",
    ]


def _scores(facts: CardFacts) -> list[str]:
    if not facts.evaluations:
        return ["None: `make eval` had not scored this checkpoint when it was exported.\n"]
    lines = ["| corpus | split | score | | translated by | signature |", "|---|---|---|---|---|---|"]
    for each in facts.evaluations:
        engine = "nmt" if each.engine == "torch" else "this export"
        translator = f"{engine}, {each.decoding.in_words}" if each.decoding else engine
        for name, score in each.scores.items():
            cells = (each.corpus, each.split, name, f"{score.score:.2f}", translator)
            lines.append(f"| {' | '.join(cells)} | `{score.signature.replace('|', ' ')}` |")
    return [*lines, ""]
