"""What an export says about itself: export.json for programs, and the model card README.md."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from nmt.config.data import DataConfig, corpora_of
from nmt.errors import UserError
from nmt.evaluation.record import EvaluationRecord
from nmt.export.target import Target, TrainedModel
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.layout import EXPORT_RECORD
from nmt.storage.files import checksums, read_json, record_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """The content of export.json, which has no path of the machine that wrote it."""

    nmt: str
    """Version of nmt that wrote the export."""
    target: str
    quantization: str
    languages: tuple[str, str]
    """Source and target language."""
    positions: int
    """Longest sentence that the export can translate, in word pieces."""
    checkpoint: CheckpointRecord
    verified: str
    """How the export compared with the model that it was made from, in one line."""
    origin: CheckpointRecord | None = None
    """The model that the run began from; None if it began with random weights."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the other files, by names with `/` after those of folders; README.md may be edited and has none."""

    @classmethod
    def read(cls, folder: Path) -> "ExportRecord":
        """Read the export.json in a folder; refuse an export whose files are not those that were written."""
        file = folder / EXPORT_RECORD
        try:
            record = record_of(cls, read_json(file))
        except ValueError as error:
            raise UserError(f"{file} is not the record of an export: run `make export` again") from error
        found = checksums_of(folder)
        for name, written in record.sha256.items():
            if found.get(name) != written:
                raise UserError(f"{folder / name} is missing, damaged or was changed: run `make export` again")
        return record


def checksums_of(folder: Path) -> dict[str, str]:
    """Return the checksums of the files of an export."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".md")
    return dict(zip((file.relative_to(folder).as_posix() for file in files), checksums(files), strict=True))


def card(target: Target, trained: TrainedModel, record: ExportRecord, scores: Sequence[EvaluationRecord]) -> str:
    """Return the card in Markdown, with the header that model hubs read."""
    checkpoint, origin = record.checkpoint, record.origin
    corpora = [corpus.settings for corpus in corpora_of(trained.settings.data).values()]
    directions = [f"{data.source_lang} to {data.target_lang}" for data in corpora]
    lines = [
        _header(target, corpora),
        f"# {trained.settings.name}: {' and '.join(dict.fromkeys(directions))}\n\n## Use\n\n{target.usage(trained)}",
        *(f"Sentences from {way} begin with `{data.tag}`.\n"
          for way, data in zip(directions, corpora, strict=True) if data.tag),
        *([f"Search: {target.note}.\n"] if target.note else []),
        "## Training\n",
        *(f"- {way}: {_text_of(data)}" for way, data in zip(directions, corpora, strict=True)),
        *([f"- begun from another model: {Path(origin.name).name}, step {origin.step:,}"] if origin else []),
        f"- checkpoint {checkpoint.name} of step {checkpoint.step}, weights' SHA-256 {checkpoint.sha256}",
        "- all settings: config.yaml\n\n## Scores\n",
        *_scores(scores),
        f"- this export, by nmt {record.nmt} for {record.target} in {record.quantization}, compared with the model: "
        f"{record.verified}",
        "\n## Licence\n\nNot stated.\n",
    ]  # fmt: skip
    return "\n".join(lines)


def _header(target: Target, corpora: Sequence[DataConfig]) -> str:
    """Return the YAML that model hubs read; the dumper quotes what YAML would misread, such as the language `no`."""
    datasets = [data.hub_dataset for data in corpora if data.source == "hub"]
    header: dict[str, object] = {
        "language": list(dict.fromkeys(each for data in corpora for each in data.languages)),
        "pipeline_tag": "translation",
        "library_name": target.library,
        "datasets": list(dict.fromkeys(datasets)),
    }
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True, default_flow_style=None)}---\n"


def _text_of(data: DataConfig) -> str:
    """Name the training text, without folders of this machine, which may be private."""
    if data.source == "hub":
        return f"{data.hub_dataset} ({data.hub_config}), revision {data.hub_revision}, split {', '.join(data.train)}"
    return f"{data.source}: {', '.join(Path(name).name for name in data.train) or data.corpus}"


def _scores(evaluations: Sequence[EvaluationRecord]) -> Iterator[str]:
    for each in evaluations:
        searched = f", {each.decoding.in_words}" if each.decoding else ""
        for name, score in each.scores.items():
            yield f"- {each.corpus} {each.split}, {each.engine}{searched}: {name} {score.score:.2f} `{score.signature}`"
