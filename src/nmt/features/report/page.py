"""Write the report of a run as one self-contained HTML file."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import NamedTuple, TypeVar

import vl_convert
from markupsafe import Markup, escape

from nmt import __version__
from nmt.config.choices import is_text
from nmt.config.keys import written
from nmt.config.saved import flatten
from nmt.data.corpora import training_splits
from nmt.data.filter_counts import FilterCount, filter_counts
from nmt.data.training_text import open_training_text
from nmt.decoding.attention import compute_attention
from nmt.errors import UserError, for_this_installation
from nmt.estimate.parameters import count_parameters, step_flops
from nmt.evaluation.finding import Table
from nmt.features.report import about, attention, charts, corpus, curves, translations
from nmt.features.report.attention import EncodedAttention
from nmt.features.report.run import Evaluated, Run
from nmt.model.interface import TranslationModel
from nmt.page import colours
from nmt.page.templates import templates_of
from nmt.runs.section import Absent, ShownRun, added_sections
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

T = TypeVar("T")
BACKTICKS = re.compile("`([^`]+)`")
"""A command in a message, as a terminal shows it."""
TitledChart = tuple[str, charts.Spec]
"""The title of a chart, and the chart."""
LoadModel = Callable[[], tuple[TranslationModel, Tokenizer]]
"""Loads the model that was scored; slow, and fails if the checkpoint was deleted."""


class SentenceRow(NamedTuple):
    """A translated sentence; the script of the page reads it as a list."""

    number: int
    """Line number, from 1."""
    source: str
    hypothesis: translations.Segments
    reference: translations.Segments
    chrf: float
    bleu: float


@dataclass(frozen=True, slots=True)
class PageData:
    """The data of the page's script other than the charts."""

    sentences: Mapping[str, Sequence[NamedTuple]]
    """Rows by split."""
    attention: Sequence[EncodedAttention] = ()


@dataclass(frozen=True, slots=True)
class AboutSection:
    """The head of the page: what was trained, where and for how long."""

    name: str
    languages: tuple[str, str]
    corpus: str
    recipe: str
    origin: str
    """The model that the run began from; empty if it began with random weights."""
    scored: str | Absent
    """The checkpoint and the search that the scores come from."""
    machine: str
    duration: str
    step: int
    """The last logged step."""
    steps: int
    """The number of steps in the settings."""
    data_has_changed: bool
    divergence: str
    """What says that the run has diverged; empty if it has not."""


@dataclass(frozen=True, slots=True)
class DataSection:
    """The training data."""

    filters: Mapping[str, Sequence[FilterCount]]
    """The counts of each filter, by corpus."""
    shares: Sequence[corpus.CorpusShare]
    """What was trained on from each corpus of a mixture; empty without a mixture."""
    splits: Sequence[corpus.SplitSize]
    lengths: charts.Spec
    fill: corpus.BatchFill


@dataclass(frozen=True, slots=True)
class TranslationsSection:
    """The translations of a split."""

    sentences: int
    """The number of sentences in the split."""
    shown: int
    """The number of sentences in the page."""
    charts: Sequence[TitledChart]
    tables: Sequence[Table]
    """What features have found."""


@dataclass(frozen=True, slots=True)
class ModelSection:
    """The size of the model and the cost of a training step."""

    parameters: Sequence[tuple[str, int, float]]
    """Name, number and share of the parameters of each component."""
    total: int
    flops: str
    """Floating-point operations of a training step, with their unit."""


def build_section(build: Callable[[], T]) -> T | Absent:
    """Return a section of the page, or the reason why it cannot be built."""
    try:
        return build()
    except UserError as error:
        return Absent(str(error))


def report(run: Run, load_model: LoadModel) -> str:
    """Return the page of a run."""
    evaluated = {split: build_section(partial(run.evaluated, split)) for split in run.splits()}
    found = {split: translations.sentences(each) for split, each in evaluated.items() if not isinstance(each, Absent)}
    attentions = build_section(lambda: _attention(found, load_model))
    shows_translations = is_text(run.languages[1]) or not evaluated
    sections = {
        "about": _about(run),
        "scores": build_section(lambda: about.scores(run)),
        "curves": build_section(lambda: curves.training_curves(run)),
        "data": build_section(lambda: _data(run)),
        "tokenizer": build_section(
            lambda: corpus.piece_statistics(run, Tokenizer.load(run.data_folder), run.manifest())
        ),
        "translations": {
            split: each if isinstance(each, Absent) else _translations(run, each, found[split])
            for split, each in evaluated.items()
            if shows_translations
        },
        "shows_translations": shows_translations,
        "added": added_sections(ShownRun(run.config_here, evaluated)),
        "attention": attentions,
        "model": build_section(lambda: _model(run)),
        "settings": about.settings(run.config),
        "environment": flatten(run.environment.to_json()) if run.environment else {},
    }
    rows = {
        split: [_row(each) for each in translations.sentences_to_show(sentences)]
        for split, sentences in found.items()
        if shows_translations
    }
    return render(
        "report.html", sections, PageData(rows, attention=() if isinstance(attentions, Absent) else attentions)
    )


def _about(run: Run) -> AboutSection:
    splits = run.splits()
    return AboutSection(
        name=run.name,
        languages=run.languages,
        corpus=run.config.data.corpus,
        recipe=about.recipe(run.config),
        origin=about.origin(run.environment),
        scored=build_section(lambda: about.scored_checkpoint(run.scores(splits[0])) if splits else ""),
        machine=about.machine(run.environment),
        duration=about.duration(run.training_seconds()) if run.events else "not started",
        step=max((event.step for event in run.events), default=0),
        steps=run.config.training.steps,
        data_has_changed=run.data_has_changed(),
        divergence=curves.divergence(run.events),
    )


def _data(run: Run) -> DataSection:
    manifest, store = run.manifest(), open_training_text(run.data_folder, run.config.data)
    return DataSection(
        filters={each.name: filter_counts(manifest, each.name) for each in training_splits(run.config.data)},
        shares=corpus.corpus_shares(run, manifest),
        splits=corpus.split_sizes(manifest),
        lengths=corpus.length_histogram(store, run.languages),
        fill=corpus.batch_fill(store, run),
    )


def _translations(run: Run, evaluated: Evaluated, found: Sequence[translations.Sentence]) -> TranslationsSection:
    by_length = charts.bars(translations.by_length(evaluated), "words in the source")
    drawn = [("Scores by length of the source", by_length)]
    source_words = (word for line in evaluated.sources for word in translations.words(line))
    counts = build_section(lambda: translations.word_counts(run, source_words, evaluated.split))
    if not isinstance(counts, Absent):
        by_frequency = charts.bars(translations.by_frequency(evaluated, counts), "training sentences with that word")
        drawn.append(("Scores by the rarest word of the source", by_frequency))
    shown, scores = len(translations.sentences_to_show(found)), evaluated.scores
    return TranslationsSection(len(found), shown, drawn, scores.findings.tables())


def _attention(found: Mapping[str, Sequence[translations.Sentence]], load_model: LoadModel) -> list[EncodedAttention]:
    """Return the attention weights of a few sentences of the first split."""
    if not found:
        raise UserError("no split has been translated yet: run `make eval`")
    model, tokenizer = load_model()
    chosen = attention.choose_sentences(next(iter(found.values())), tokenizer)
    if not chosen:
        raise UserError(
            f"no sentence and translation have {attention.MIN_PIECES} to {attention.MAX_PIECES} word pieces"
        )
    return attention.encode_attentions(
        [compute_attention(model, tokenizer, each.source, "".join(each.hypothesis)) for each in chosen]
    )


def _model(run: Run) -> ModelSection:
    trained = run.manifest().tokenizer()
    vocabularies = trained.source_vocabulary, trained.target_vocabulary
    size = count_parameters(run.config.model, *vocabularies)
    parameters = about.parameters(size)
    return ModelSection(
        parameters=parameters,
        total=size.total,
        flops=about.operations(step_flops(run.config, size, trained.target_vocabulary)),
    )


def _row(sentence: translations.Sentence) -> SentenceRow:
    return SentenceRow(
        sentence.number, sentence.source, sentence.hypothesis, sentence.reference,
        round(sentence.chrf, 1), round(sentence.bleu, 1),
    )  # fmt: skip


def render(template: str, sections: Mapping[str, object], data: PageData) -> str:
    """Fill in a template; the page's script gets `data` and every chart that the template places."""
    specs: list[charts.Spec] = []
    environment = templates_of("nmt.features.report")
    environment.filters |= {
        "written": _written,
        "piece": lambda piece: piece.replace(SPACE_MARK, "·"),
        "signature": lambda text: Markup("|<wbr>").join(text.split("|")),  # allows a line break after each bar
        "commands": lambda text: Markup(BACKTICKS.sub(r"<code>\1</code>", str(escape(for_this_installation(text))))),
    }
    environment.tests["absent"] = lambda value: isinstance(value, Absent)

    def place(spec: charts.Spec) -> int:
        """Give the chart to the script and return its index there."""
        specs.append(spec)
        return len(specs) - 1

    environment.globals |= {
        "version": __version__,
        "place": place,
        "json": lambda: _script_json(data, specs),
        "file": lambda name: Markup(environment.loader.get_source(environment, name)[0]),  # type: ignore[union-attr]
        "colours": Markup(colours()),
        "library": lambda: Markup(_library()),
    }
    return environment.get_template(template).render(**sections)


def _script_json(data: PageData, specs: Sequence[charts.Spec]) -> Markup:
    """Return JSON in which no text can end the script element."""
    content = {
        "sentences": data.sentences,
        "attention": [asdict(each) for each in data.attention],
        "charts": specs,
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed from the installed package."""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("</script", "<\\/script")


def _written(value: object) -> str:
    """Return a setting as text."""
    match value:
        case list():
            return ", ".join(map(str, value)) or "none"
        case "" | None:
            return "—"
        case _:
            return written(value)
