"""Write the report of a run as one self-contained HTML file."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nmt import __version__
from nmt.config.saved import flatten
from nmt.data.filter_counts import filter_counts
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.model.interface import TranslationModel
from nmt.report import about, attention, charts, corpus, curves, translations
from nmt.report.run import Evaluated, Run
from nmt.text.tokenizer import Tokenizer

Chart = tuple[str, charts.Spec]
"""The title of a chart, and the chart."""
LoadModel = Callable[[], tuple[TranslationModel, Tokenizer]]
"""Loads the model that was scored; slow, and not always possible."""
PIECE = "▁"
"""The mark in a vocabulary for the space before a word."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The reason why a section of the page is missing."""

    reason: str


def part(build: Callable[[], Any]) -> Any:
    """Return a section of the page, or the reason why it cannot be built."""
    try:
        return build()
    except UserError as error:
        return Absent(str(error))


def report(run: Run, load_model: LoadModel) -> str:
    """Return the page of a run."""
    evaluated = {split: part(partial(run.evaluated, split)) for split in run.splits()}
    found = {
        split: each if isinstance(each, Absent) else translations.sentences(each) for split, each in evaluated.items()
    }
    parts = {
        "about": _about(run),
        "scores": part(lambda: about.scores(run)),
        "curves": part(lambda: curves.training_curves(run)),
        "data": part(lambda: _data(run)),
        "tokenizer": part(lambda: corpus.piece_statistics(run, Tokenizer.load(run.data_folder), run.records())),
        "translations": {split: _translations(run, evaluated[split], found[split]) for split in evaluated},
        "attention": part(lambda: _attention(found, load_model)),
        "model": part(lambda: _model(run)),
        "settings": about.settings(run.config),
        "environment": flatten(run.environment),
    }
    return render("report.html", parts, {
        "sentences": {
            split: [_compact(each) for each in translations.shown(sentences)]
            for split, sentences in found.items() if not isinstance(sentences, Absent)
        },
        "attention": [] if isinstance(parts["attention"], Absent) else parts["attention"],
    })  # fmt: skip


def _about(run: Run) -> dict[str, Any]:
    steps = [event.step for event in run.events]
    return {
        "name": run.name,
        "languages": run.languages,
        "corpus": run.config.data.corpus,
        "recipe": about.recipe(run.config),
        "scored": part(lambda: about.scored(run.scores(run.splits()[0])) if run.splits() else ""),
        "where": about.where(run.environment),
        "duration": about.duration(run.seconds()) if run.events else "not yet",
        "step": max(steps, default=0),
        "steps": run.config.training.steps,
        "data_has_changed": run.data_has_changed(),
    }


def _data(run: Run) -> dict[str, Any]:
    records, store = run.records(), PairStore.open(run.data_folder, "train")
    fill = corpus.batch_fill(store, run)
    return {
        "filters": filter_counts(records),
        "splits": corpus.splits(records),
        "lengths": corpus.length_histogram(store, run.languages),
        "fill": asdict(fill),
    }


def _translations(run: Run, evaluated: Evaluated | Absent, found: Sequence[translations.Sentence] | Absent) -> Any:
    if isinstance(evaluated, Absent) or isinstance(found, Absent):
        return evaluated
    measures = ("BLEU", "chrF")
    lengths = charts.bars(translations.by_length(evaluated), measures, "words in the source")
    drawn = {"lengths": ("Scores by length of the source", lengths)}
    counts: Counter[str] | Absent = part(
        lambda: translations.word_counts(run, (word for line in evaluated.sources for word in translations.words(line)))
    )
    if not isinstance(counts, Absent):
        rows = translations.by_frequency(evaluated, counts)
        drawn["frequency"] = (
            "Scores by the rarest word of the source", charts.bars(rows, measures, "times seen in training"),
        )  # fmt: skip
    return {"sentences": len(found), "shown": len(translations.shown(found)), "charts": drawn}


def _attention(found: Mapping[str, Any], load_model: LoadModel) -> list[dict[str, Any]]:
    sentences = next((each for each in found.values() if not isinstance(each, Absent)), None)
    if sentences is None:
        raise UserError("no split has been translated yet: run `make eval`")
    model, tokenizer = load_model()
    chosen = attention.choose(sentences, tokenizer)
    if not chosen:
        raise UserError(f"no sentence has between 4 and {attention.LONGEST} word pieces on both sides")
    looked = [attention.attention(model, tokenizer, each.source, "".join(each.hypothesis)) for each in chosen]
    return attention.packed(looked)


def _model(run: Run) -> dict[str, Any]:
    trained = run.records().tokenizer()
    sizes = trained.source_vocabulary, trained.target_vocabulary
    parameters = about.parameters(run.config, *sizes)
    return {
        "parameters": parameters,
        "total": sum(count for _, count, _ in parameters),
        "flops": about.operations(about.step_flops(run.config, *sizes)),
    }


def _compact(sentence: translations.Sentence) -> list[Any]:
    return [
        sentence.number, sentence.source, sentence.hypothesis, sentence.reference,
        round(sentence.chrf, 1), round(sentence.bleu, 1),
    ]  # fmt: skip


def render(template: str, parts: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Fill in a template; `data` goes to the page's script, with every chart that the template placed."""
    specs: list[charts.Spec] = []
    environment = Environment(
        loader=PackageLoader("nmt.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "written": _written,
        "piece": lambda piece: piece.replace(PIECE, "·"),
        "signature": lambda text: Markup("|<wbr>").join(text.split("|")),  # may be broken after each bar
    }
    environment.tests["absent"] = lambda value: isinstance(value, Absent)

    def place(spec: charts.Spec) -> int:
        specs.append(spec)
        return len(specs) - 1

    environment.globals |= {
        "version": __version__,
        "place": place,
        "json": lambda: _script_json({**data, "charts": specs}),
        "file": lambda name: Markup(environment.loader.get_source(environment, name)[0]),  # type: ignore[union-attr]
        "library": lambda: Markup(_library()),
    }
    return environment.get_template(template).render(**parts)


def _script_json(value: Any) -> Markup:
    """Return JSON in which no text can end the script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed from the installed package."""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("</script", "<\\/script")


def _written(value: Any) -> str:
    """Return a setting as text."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(map(str, value)) or "none"
        case "" | None:
            return "—"
        case _:
            return str(value)
