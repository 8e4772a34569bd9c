"""The model card of an export: usage, training data, recipe, scores and licence."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from nmt import __version__
from nmt.config.schema import Config, DataConfig, DecodingConfig, TrainingConfig
from nmt.config.schema.corpora import corpora_of
from nmt.data.filter_counts import FilterCount
from nmt.data.sources.hub import is_hub_id
from nmt.errors import for_this_installation
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
    filters: Mapping[str, Sequence[FilterCount]]
    """The pairs that each filter dropped from the training text, by corpus, as far as the counts are known."""
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
    corpora = {name: corpus.settings for name, corpus in corpora_of(config.data).items()}
    directions = " and ".join(dict.fromkeys(map(_direction, corpora.values())))
    note = facts.exporter.search_note(facts.decoding)
    blocks = [
        _header(facts, corpora.values()),
        f"# {config.name}: {directions}\n",
        f"A Transformer for translation from {directions}, trained and exported with nmt {__version__}.\n",
        "## Use\n",
        facts.exporter.usage(config, facts.decoding),
        *_tags(corpora),
        "## Training data\n",
        *_data(corpora, facts.filters),
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


def _direction(data: DataConfig) -> str:
    return f"{data.source_lang} to {data.target_lang}"


def _header(facts: CardFacts, corpora: Collection[DataConfig]) -> str:
    """Return the YAML that model hubs read; the dumper quotes what YAML would misread, such as the language `no`."""
    languages = (language for data in corpora for language in (data.source_lang, data.target_lang))
    header: dict[str, object] = {
        "language": list(dict.fromkeys(languages)),
        "pipeline_tag": "translation",
        "library_name": facts.exporter.library,
        "tags": ["translation", "transformer", "nmt"],
    }
    if facts.licence:
        header["license"] = facts.licence
    if datasets := [data.hub_dataset for data in corpora if data.source == "hub" and is_hub_id(data)]:
        header["datasets"] = list(dict.fromkeys(datasets))
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return f"---\n{text}---\n"


def _tags(corpora: Mapping[str, DataConfig]) -> list[str]:
    """Say which tags sentences begin with; nothing if there are none."""
    tagged = {name: data for name, data in corpora.items() if data.tag}
    if not tagged:
        return []
    needed = "needs" if len(tagged) == len(corpora) else "may have"
    of_corpus = ", as in the corpus {}" if len(corpora) > 1 else ""
    lines = [f"- `{data.tag}`: {_direction(data)}{of_corpus.format(name)}" for name, data in tagged.items()]
    return [f"Each sentence {needed} one of these tags before it, with a space between them:\n", *lines, ""]


def _data(corpora: Mapping[str, DataConfig], filters: Mapping[str, Sequence[FilterCount]]) -> list[str]:
    """Describe the training text of each corpus."""
    lines = []
    for name, data in corpora.items():
        tag = f", tag `{data.tag}`" if data.tag else ""
        title = f"{name}, {_direction(data)}{tag}" if len(corpora) > 1 else f"{data.corpus}{tag}"
        lines += [f"- {title}: {_origin(data)}", *(f"  - {fact}" for fact in _filtered(data, filters.get(name, ())))]
    return [*lines, ""]


def _origin(data: DataConfig) -> str:
    if data.source == "hub":  # a local path would reveal its owner's folders and help no one else
        dataset = data.hub_dataset if is_hub_id(data) else f"a local copy named {Path(data.hub_dataset).name}"
        return f"{dataset} ({data.hub_config}), revision {data.hub_revision}, split {', '.join(data.train)}"
    if data.source == "demo":
        return "the embedded demo grammar"
    files = ", ".join(Path(name).name for name in data.train)
    return f"the files {files}" if data.source == "files" else f"the source `{data.source}` {files}".rstrip()


def _filtered(data: DataConfig, filters: Sequence[FilterCount]) -> Iterator[str]:
    """Yield the filters of a corpus, and the pairs that they dropped if that is known."""
    limits = f"at most {data.max_words} words" if data.max_words else "no limit on words"
    limits += f", at most {data.max_pieces} word pieces per side"
    limits += f", lengths within a factor of {data.max_ratio:g}" if data.max_ratio else ""
    limits += ", no copies" if data.drop_copies else ""
    limits += ", no duplicates" if data.deduplicate else ""
    yield f"filters: {limits}"
    if filters:
        dropped = ", ".join(f"{each.dropped:,} by {each.name}" for each in filters if each.dropped) or "none"
        yield f"pairs read: {filters[0].left:,}; dropped: {dropped}; trained on: {filters[-1].left:,}"


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
        f"label smoothing {training.label_smoothing:g}, {_optimizer(training)}",
        *([f"- begun from another model: {facts.record.origin.summary}"] if facts.record.origin else []),
        "- all settings: config.yaml\n",
    ]


def _optimizer(training: TrainingConfig) -> str:
    """Return the optimizer by its name in the settings, with the numbers that matter."""
    betas = f" ({training.adam_beta1:g}, {training.adam_beta2:g})" if training.optimizer == "adam" else ""
    decay = f" with weight decay {training.weight_decay:g}" if training.weight_decay else ""
    return f"optimizer {training.optimizer}{betas}{decay}"


def _scores(facts: CardFacts) -> list[str]:
    if not facts.evaluations:
        return [for_this_installation("None: `make eval` had not scored this checkpoint when it was exported.\n")]
    lines = ["| corpus | split | score | | translated by | signature |", "|---|---|---|---|---|---|"]
    for each in facts.evaluations:
        engine = "nmt" if each.engine == "torch" else "this export"
        translator = f"{engine}, {each.decoding.in_words}" if each.decoding else engine
        for name, score in each.scores.items():
            cells = (each.corpus, each.split, name, f"{score.score:.2f}", translator)
            lines.append(f"| {' | '.join(cells)} | `{score.signature.replace('|', ' ')}` |")
    return [*lines, ""]
