"""The card that goes with an exported model: what it is, what it learned from, how good it is, how to use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nmt import __version__
from nmt.config.schema import Config, DataConfig, DecodingConfig
from nmt.data.sources.hub import is_hub_id
from nmt.estimate.parameters import count_parameters, describe_depth

USAGE = {
    "ctranslate2": (
        "import ctranslate2, sentencepiece",
        'model, pieces = ctranslate2.Translator("."), sentencepiece.SentencePieceProcessor("{source}")',
        'source = pieces.encode("{text}", out_type=str)',
        "found = model.translate_batch([source], beam_size={beam}, num_hypotheses={beam}, length_penalty=1e-9, "
        "max_decoding_length=len(source) + {extra_length}, return_scores=True)[0]",
        "penalties = [((6 + len(each)) / 6) ** {alpha:g} for each in found.hypotheses]",
        "ranked = sorted(zip(found.scores, penalties, found.hypotheses), key=lambda each: -each[0] / each[1])",
        "print({target}.decode(ranked[0][2]))",
    ),
    "huggingface": (
        "from transformers import AutoTokenizer, MarianMTModel",
        'model, tokenizer = MarianMTModel.from_pretrained("."), AutoTokenizer.from_pretrained(".")',
        'print(tokenizer.batch_decode(model.generate(**tokenizer("{text}", return_tensors="pt")), '
        "skip_special_tokens=True))",
    ),
    "safetensors": (
        "echo '{text}' | nmt translate checkpoint=. decoding.beam={beam} decoding.alpha={alpha:g} "
        "decoding.extra_length={extra_length}",
    ),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a card tells."""

    target: str
    trained: Config
    """The settings that the model was trained with."""
    vocabularies: tuple[int, int]
    record: Mapping[str, Any]
    """What export.json says."""
    manifest: Mapping[str, Any] | None
    """What the prepared data says of itself, where it is there."""
    evaluations: Sequence[Mapping[str, Any]]
    """The evaluations of this very checkpoint."""
    decoding: DecodingConfig
    """The search that `eval` uses with the settings of the export."""
    size: int
    """Bytes of all files."""
    licence: str


def card(facts: Facts) -> str:
    """The card, in Markdown, with the header that model hubs read."""
    config, record = facts.trained, facts.record
    source, target = config.data.source_lang, config.data.target_lang
    parts = [
        _header(facts),
        f"# {config.name}: {source} to {target}\n",
        f"A Transformer for translation from {source} to {target}, trained and exported with nmt {__version__}.\n",
        "## Use\n",
        _usage(facts),
        "## Training data\n",
        *_data(config.data, facts.manifest),
        "## Recipe\n",
        *_recipe(facts),
        "## Scores\n",
        *_scores(facts),
        "## This export\n",
        f"- format: {facts.target}, {record['quantization']}, {facts.size / 1e6:.1f} MB",
        f"- from checkpoint {record['checkpoint']['name']} of step {record['checkpoint']['step']}, "
        f"weights' SHA-256 {record['checkpoint']['sha256']}",
        f"- compared with the model: {record['verified']['said']}",
        *_search(facts),
        "",
        "## Licence\n",
        f"{facts.licence or 'Not stated (export.licence was empty).'}",
    ]
    return "\n".join(parts) + "\n"


def _header(facts: Facts) -> str:
    """Return the YAML that model hubs read; the dumper quotes what YAML would misread, such as the language `no`."""
    data = facts.trained.data
    header: dict[str, Any] = {
        "language": [data.source_lang, data.target_lang],
        "pipeline_tag": "translation",
        "library_name": {"huggingface": "transformers"}.get(facts.target, facts.target),
        "tags": ["translation", "transformer", "nmt"],
    }
    if facts.licence:
        header["license"] = facts.licence
    if data.source == "hub" and is_hub_id(data):
        header["datasets"] = [data.hub_dataset]
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return f"---\n{text}---\n"


def _usage(facts: Facts) -> str:
    joint = facts.trained.tokenizer.joint
    target = "pieces" if joint else 'sentencepiece.SentencePieceProcessor("tokenizer.target.model")'
    names = {
        "source": "tokenizer.model" if joint else "tokenizer.source.model",
        "target": target,
        "beam": facts.decoding.beam,
        "alpha": facts.decoding.alpha,
        "extra_length": facts.decoding.extra_length,
        "text": "A man sleeps." if facts.trained.data.source_lang == "en" else "...",
    }
    code = "\n".join(line.format(**names) for line in USAGE[facts.target])
    return f"```{'sh' if facts.target == 'safetensors' else 'python'}\n{code}\n```\n"


def _data(data: DataConfig, manifest: Mapping[str, Any] | None) -> list[str]:
    if data.source == "hub":  # a path says much about its owner's disk and nothing to others
        dataset = data.hub_dataset if is_hub_id(data) else f"a local copy named {Path(data.hub_dataset).name}"
        origin = f"{dataset} ({data.hub_config}), revision {data.hub_revision}, split {', '.join(data.train)}"
    elif data.source == "files":
        origin = f"the files {', '.join(Path(name).name for name in data.train)}"
    else:
        origin = "the embedded demo grammar"
    lines = [f"- {data.corpus}: {origin}"]
    filters = f"at most {data.max_words} words" if data.max_words else "no limit of words"
    filters += f", at most {data.max_pieces} word pieces a side"
    filters += f", lengths within a factor of {data.max_ratio:g}" if data.max_ratio else ""
    filters += ", no copies" if data.drop_copies else ""
    filters += ", no duplicates" if data.deduplicate else ""
    lines.append(f"- filters: {filters}")
    if manifest:
        collected = manifest["steps"]["collect train"]["result"]
        encoded = manifest["steps"]["encode train"]["result"]
        dropped = {**collected["dropped"], **encoded["dropped"]}
        lost = ", ".join(f"{count:,} by {name}" for name, count in dropped.items() if count) or "none"
        lines.append(f"- pairs read: {collected['read']:,}; dropped: {lost}; trained on: {encoded['pairs']:,}")
    return [*lines, ""]


def _recipe(facts: Facts) -> list[str]:
    config, model, training = facts.trained, facts.trained.model, facts.trained.training
    size = count_parameters(model, *facts.vocabularies)
    return [
        f"- {size.total:,} parameters: {describe_depth(model)} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads, {model.positions} positions, {model.norm_placement}-norm "
        f"({model.norm}), {model.activation}",
        f"- {config.tokenizer.model_type} vocabulary of {facts.vocabularies[1]:,} word pieces"
        + (", shared by both languages" if config.tokenizer.joint else " a language"),
        f"- {training.batch_tokens:,} tokens a side and batch, {training.schedule} schedule with "
        f"{training.warmup_steps:,} steps of warmup, dropout {model.dropout:g}, "
        f"label smoothing {training.label_smoothing:g}, Adam ({training.adam_beta1:g}, {training.adam_beta2:g})",
        "- all settings: config.yaml\n",
    ]


def _scores(facts: Facts) -> list[str]:
    if not facts.evaluations:
        return ["None: `make eval` had not scored this checkpoint when it was exported.\n"]
    lines = ["| corpus | split | score | | translated by | signature |", "|---|---|---|---|---|---|"]
    for each in facts.evaluations:
        by = f"{'nmt' if each.get('engine', 'torch') == 'torch' else 'this export'}, {_described(each['decoding'])}"
        for name in ("bleu", "bleu_paper", "chrf", "ter"):
            score, signature = each[name]["score"], each[name]["signature"].replace("|", " ")
            lines.append(f"| {each['corpus']} | {each['split']} | {name} | {score:.2f} | {by} | `{signature}` |")
    return [*lines, ""]


def _described(decoding: Mapping[str, Any]) -> str:
    """Say how translations were searched for."""
    if decoding["strategy"] == "sample":
        return "sampled"
    return f"beam {decoding['beam']}, GNMT's length penalty {decoding['alpha']:g}"


def _search(facts: Facts) -> list[str]:
    """Say how the search of the export differs from that of the scores above."""
    if facts.target != "huggingface":
        return []
    return [
        "- search: as generation_config.json says, which is what was compared with the model: "
        f"beam {facts.decoding.beam}, without a length penalty. Scores of nmt are of a search with GNMT's length "
        f"penalty {facts.decoding.alpha:g}, which Hugging Face does not have: its `length_penalty` is another formula"
    ]
