"""The contents of the report, section by section."""

import shutil
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch

from nmt.config.compose import compose
from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.data.filter_counts import filter_counts
from nmt.data.manifest import read_manifest
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.evaluation.record import EvaluationRecord
from nmt.features.report import about, charts, corpus, curves, translations
from nmt.features.report.charts import MAX_DOTS, MAX_POINTS, log_ticks, thin_out
from nmt.features.report.run import Evaluated, Run, read_run
from nmt.features.report.translations import mark_differences
from nmt.model.attention_plan import Recorder
from nmt.model.build import build_model
from nmt.model.layers import SelfAttention
from nmt.model.packed import Packed
from nmt.model.positions.base import Places
from nmt.model.transformer import Transformer
from nmt.paper.figures import paper_bleu, paper_perplexity
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.runs.metrics import MetricsEvent, event_of
from tests.features.report.runs import EVENTS


def read(config: Config, name: str = "first") -> Run:
    return read_run(Path(config.paths.outputs), name, Path(config.paths.data))


def evaluation(**fields: Any) -> EvaluationRecord:
    return EvaluationRecord(split="test", scores={}, **fields)


def test_error_for_a_missing_run_names_the_most_similar_run(first: Config) -> None:
    with pytest.raises(UserError, match=r"no run frist in .*outputs: did you mean first\?"):
        read(first, "frist")


def test_error_without_any_run_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run `make train` first"):
        read_run(tmp_path, "a", tmp_path)


def test_training_time_excludes_the_time_between_interruption_and_resume(first: Config) -> None:
    assert read(first).training_seconds() == 12.0 + 9.0


def test_recipe_says_after_how_many_minutes_a_run_ends() -> None:
    steps, limit = "training.steps=700", "training.max_training_minutes=2.5"
    assert "; 700 steps of " in about.recipe(compose([steps]))
    assert "; 700 steps or 2.5 minutes of " in about.recipe(compose([steps, limit]))


@pytest.mark.parametrize(("seconds", "words"), [(50, "50 s"), (600, "10 min"), (7200, "2.0 h")])
def test_duration_has_a_suitable_unit(seconds: float, words: str) -> None:
    assert about.duration(seconds) == words


def test_missing_text_of_a_split_is_refused_by_name(first: Config, tmp_path: Path) -> None:
    run = read(first)
    assert run.splits() == ["test"]
    assert len(run.evaluated("test").hypotheses) == 30
    moved = replace(run, data_folder=tmp_path)
    with pytest.raises(UserError, match=r"test\.en is not there: run `make data`"):
        moved.evaluated("test")


def test_sentences_of_a_report_have_no_tags(first: Config, tmp_path: Path) -> None:
    run = read(first)
    plain = run.evaluated("test")
    (tmp_path / "test.en").write_text("".join(f"<de> {line}\n" for line in plain.sources), encoding="utf-8")
    shutil.copyfile(run.data_folder / "test.de", tmp_path / "test.de")
    tagged = replace(run, data_folder=tmp_path, config=replace(run.config, data=replace(run.config.data, tag="<de>")))
    assert tagged.evaluated("test") == plain


def test_curves_leave_out_values_that_are_not_finite(first: Config) -> None:
    assert curves.points([*map(event_of, EVENTS[1:5:3])], "loss") == [(10, 5.0)]
    drawn = curves.training_curves(read(first))
    assert list(drawn) == ["loss", "perplexity", "bleu", "learning_rate", "gradient_norm", "tokens_per_second"]


def test_titles_distinguish_smoothed_loss_from_negative_log_likelihood(first: Config) -> None:
    run = read(first)
    events = [
        replace(event, figures={**event.figures, "nll": event.figures["loss"]})
        for event in run.events
        if "loss" in event.figures
    ]
    for drawn in (
        curves.training_curves(replace(run, events=events)),
        curves.overlaid_curves({"a": replace(run, events=events)}),
    ):
        assert drawn["loss"][0].startswith("Label-smoothed loss")
        assert drawn["nll"][0].startswith("Negative log-likelihood")


def test_resumes_and_skipped_steps_are_marked() -> None:
    markers = curves.resumes_and_skips([*map(event_of, EVENTS)])
    assert [(marker.step, marker.label) for marker in markers] == [(10, "resumed"), (20, "3 skipped")]


@pytest.mark.parametrize("count", [0, 1, MAX_POINTS, MAX_POINTS + 1, 5 * MAX_POINTS + 3])
def test_thinned_curves_keep_their_first_and_last_points(count: int) -> None:
    points = [(step, 0.5) for step in range(count)]
    thinned = thin_out(points)
    assert len(thinned) <= MAX_POINTS + 1
    assert [*thinned[:1], *thinned[-1:]] == [*points[:1], *points[-1:]]
    assert set(thinned) <= set(points)


@pytest.mark.parametrize(
    ("values", "named"),
    [([3.0, 45.0], {5.0, 10.0, 20.0}), ([3.0, 450.0], {3.0, 10.0, 300.0}), ([1.0, 1e6], {1.0, 10.0, 1e5})],
)
def test_log_ticks_surround_the_values(values: list[float], named: set[float]) -> None:
    ticks = log_ticks(values)
    assert ticks[0] <= values[0]
    assert ticks[-1] >= values[-1]
    assert named <= set(ticks)
    assert sum(values[0] <= tick <= values[-1] for tick in ticks) <= 7


@pytest.mark.parametrize(("lowest", "highest", "kind"), [(1.2, 1.6, None), (2.0, 900.0, "log")])
def test_an_axis_is_logarithmic_only_over_a_wide_range(lowest: float, highest: float, kind: str | None) -> None:
    drawn = charts.curves({"training": [(1, highest), (2, lowest)]}, charts.Axis("perplexity", log=True))
    assert drawn["layer"][0]["encoding"]["y"]["scale"].get("type") == kind


def test_a_curve_of_few_points_shows_each_of_them() -> None:
    """A run that was validated once has a curve of a single point, which a line alone would not show."""
    many = [(step, 1.0) for step in range(MAX_DOTS + 1)]
    drawn = charts.curves({"training": many, "development": [(5, 2.0)]}, charts.Axis("loss"))
    circles = [layer for layer in drawn["layer"] if "transform" in layer]
    assert [layer["transform"][0]["filter"]["oneOf"] for layer in circles] == [["development"]]
    assert not [layer for layer in charts.curves({"a": many}, charts.Axis("x"))["layer"] if "transform" in layer]


def test_the_scored_checkpoint_and_search_are_named() -> None:
    averaged = CheckpointRecord("averaged", 1500, averaged_from=("a", "b", "c"))
    assert about.scored_checkpoint(evaluation(checkpoint=averaged, decoding=DecodingConfig(beam=4, alpha=0.6))) == (
        "checkpoint averaged of 3, step 1,500; beam 4, length penalty 0.6"
    )
    sampled = evaluation(checkpoint=CheckpointRecord("best", 7), decoding=DecodingConfig(strategy="sample"))
    assert about.scored_checkpoint(sampled) == "checkpoint best, step 7; sampled"
    assert about.scored_checkpoint(evaluation()) == ""


@pytest.mark.parametrize(
    ("count", "words"), [(9.5e12, "9.5 TFLOP"), (1.45e10, "14.5 GFLOP"), (2e15, "2 PFLOP"), (3e6, "3 MFLOP")]
)
def test_operations_have_a_suitable_unit(count: float, words: str) -> None:
    assert about.operations(count) == words


def test_filter_counts_add_up(first: Config) -> None:
    counts = filter_counts(read_manifest(first.data_folder))
    assert (counts[0].left, counts[-1].left) == (200, len(PairStore.open(first.data_folder, "train")))
    for before, after in pairwise(counts):
        assert before.left - after.dropped == after.left
    assert {count.name: count.limit for count in counts}["pieces"].startswith("data.max_pieces=")


def test_batch_fill_counts_every_token_once(first: Config) -> None:
    store = PairStore.open(first.data_folder, "train")
    fill = corpus.batch_fill(store, read(first))
    tokens = int(store.source_lengths.sum()) + len(store)
    assert fill.mean["en"] * fill.batches * 200 == pytest.approx(tokens)
    assert fill.sentences * fill.batches == pytest.approx(200)


def test_only_the_papers_recipes_have_its_results() -> None:
    base, big = compose([]), compose(["experiment=wmt14_en_de_big"])
    assert (paper_bleu(base, "test"), paper_bleu(big, "test"), paper_bleu(base, "valid")) == (27.3, 28.4, None)
    row = compose(["experiment=table3/c4"])
    assert (paper_bleu(row, "valid"), paper_perplexity(row), paper_bleu(row, "test")) == (24.5, 5.75, None)
    assert paper_bleu(compose(["experiment=multi30k"]), "test") is None
    assert paper_bleu(compose(["model.layers=4"]), "test") is None


def test_settings_that_differ_from_the_base_are_marked() -> None:
    differing = {
        each.key: (each.value, each.base) for each in about.settings(compose(["training.steps=7"])) if each.differs
    }
    assert differing == {"training.steps": (7, 100_000)}


@pytest.mark.parametrize(
    ("left", "right", "segments"),
    [
        ("a b c", "a b c", (["a b c"], ["a b c"])),
        ("a b c", "a x c", (["a ", "b", " c"], ["a ", "x", " c"])),
        ("a b c.", "a x y.", (["a ", "b c", "."], ["a ", "x y", "."])),
        ("", "new", ([""], ["", "new"])),
        ("old", "", (["", "old"], [""])),
    ],
)
def test_every_second_segment_differs_between_the_lines(
    left: str, right: str, segments: tuple[list[str], list[str]]
) -> None:
    assert mark_differences(left, right) == segments


def test_joined_segments_are_the_original_lines() -> None:
    words = ["the", "old", "man", " ", ",", "über", "3.5", "\t"]
    random = np.random.default_rng(1)
    for _ in range(200):
        lines = [" ".join(random.choice(words, random.integers(0, 9))) for _ in range(2)]
        assert ["".join(segments) for segments in mark_differences(lines[0], lines[1])] == lines


def test_bleu_in_a_report_has_the_tokenizer_of_eval(first: Config) -> None:
    run = read(first)
    assert run.evaluated("test").bleu_tokenizer == "13a"  # these scores name none
    japanese = replace(run, config=replace(first, data=replace(first.data, target_lang="ja")), data_folder=Path())
    assert japanese.bleu_tokenizer_of("test") == "ja-mecab"
    hypothesis, reference = "der kleine Hund sieht die Katze", "der kleine Hund, sah die Katzen"
    evaluated = Evaluated("test", evaluation(), ["a b"], [reference], [hypothesis], bleu_tokenizer="char")
    expected = sacrebleu.corpus_bleu([hypothesis], [[reference]], tokenize="char").score
    assert translations.by_length(evaluated)[0].scores["BLEU"] == expected
    assert translations.sentences(evaluated)[0].bleu == pytest.approx(expected)


def test_words_in_scripts_without_spaces_and_with_vowel_signs_are_counted() -> None:
    sources = ["这是一只很大的猫。", "मैं हिन्दी"]  # a word per character, and two words with signs
    evaluated = Evaluated("test", evaluation(), sources, ["x", "y"], ["x", "y"])
    assert [bucket.label for bucket in translations.by_length(evaluated)] == ["0–5", "6–10"]
    assert translations.words(sources[1]) == sources[1].split()
    counts = Counter(dict.fromkeys("这是一只很大的猫", 20) | dict.fromkeys(sources[1].split(), 200))
    assert [bucket.label for bucket in translations.by_frequency(evaluated, counts)] == ["10–99", "100–999"]


def test_sentences_are_bucketed_by_length_and_by_their_rarest_word() -> None:
    evaluated = Evaluated("test", evaluation(), ["a b", "a b c d e f"], ["x y", "x y z"], ["x y", "q q q"])
    buckets = translations.by_length(evaluated)
    assert [(bucket.label, bucket.sentences) for bucket in buckets] == [("0–5", 1), ("6–10", 1)]
    assert buckets[0].scores["chrF"] == pytest.approx(100)
    assert buckets[1].scores["chrF"] == pytest.approx(0)
    counts = Counter({"a": 5000, "b": 50, "c": 5, "d": 5, "e": 5})
    assert [bucket.label for bucket in translations.by_frequency(evaluated, counts)] == ["0", "10–99"]


def test_every_reference_counts_and_the_most_similar_one_is_compared() -> None:
    others = [["p q r"], ["der Hund sah die Katze"]]
    evaluated = Evaluated("test", evaluation(), ["a b"], others[0], ["der Hund sieht die Katze"], others[1:])
    bleu = sacrebleu.corpus_bleu(evaluated.hypotheses, others).score
    assert translations.by_length(evaluated)[0].scores["BLEU"] == pytest.approx(bleu)
    (shown,) = translations.sentences(evaluated)
    assert shown.chrf == pytest.approx(sacrebleu.sentence_chrf(evaluated.hypotheses[0], ["p q r", *others[1]]).score)
    assert "".join(shown.reference) == "der Hund sah die Katze"


def test_a_run_that_diverged_says_since_when() -> None:
    def line(kind: str, step: int, loss: float | None, **figures: float) -> MetricsEvent:
        return MetricsEvent(kind, step, 0.0, {"loss": loss, **figures})

    healthy = [
        line("train", 10, 3.0),
        line("train", 20, None),
        line("train", 30, 2.9),
        MetricsEvent("start", 30, 0.0, {}),
    ]
    assert curves.divergence(healthy) == curves.divergence([]) == ""
    lost = [
        *healthy,
        line("train", 1040, None, skipped=9),
        line("valid", 1050, None),
        line("train", 1050, None, skipped=10),
    ]
    assert curves.divergence(lost) == (
        "The loss has not been finite since step 1,040; "
        "the gradients of 19 steps were not finite, so they were skipped."
    )


def test_the_machine_names_its_precision_if_it_is_known(first: Config) -> None:
    environment = read(first).environment
    assert environment is not None
    assert " in " not in about.machine(replace(environment, precision="auto"))
    assert about.machine(replace(environment, precision="bf16")).endswith(" in bf16")
    moved = replace(environment, precision="bf16", earlier=[replace(environment, precision="fp32")])
    assert about.machine(moved).endswith(
        "threads in fp32, then " + about.machine(replace(environment, precision="bf16"))
    )


def test_settings_that_change_no_model_are_not_compared() -> None:
    other = compose(["training.log_every=7", "describe.gpus=2", "training.warmup_steps=9"])
    assert about.differences({"a": compose([]), "b": other}) == [("training.warmup_steps", [4000, 9])]


def test_words_are_counted_in_the_training_text(first: Config) -> None:
    text = (first.data_folder / "train.en").read_text(encoding="utf-8").split()
    assert translations.word_counts(read(first), ["king", "nowhere"]) == {"king": text.count("king")}


def test_a_large_split_shows_its_best_middle_and_worst_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [translations.Sentence(number, "s" * 10, [], [], float(number), 0.0) for number in range(1, 101)]
    assert translations.sentences_to_show(sentences) == sentences
    monkeypatch.setattr(translations, "MAX_CHARACTERS", 300)
    numbers = [each.number for each in translations.sentences_to_show(sentences)]
    assert numbers == [*range(1, 11), *range(46, 56), *range(91, 101)]


def test_recorded_attention_weights_are_those_that_the_model_uses() -> None:
    config = ModelConfig(layers=2, d_model=16, d_ff=16, heads=4, kv_heads=2, dropout=0.0)
    model = build_model(config, 50, 50).eval()
    assert isinstance(model, Transformer)
    source, target = Packed.from_sentences([[5, 6, 7, 3]]), Packed.from_sentences([[2, 8, 9]])
    encoder, decoder = Recorder(), Recorder()
    with torch.no_grad():
        memory = model.encode(source, encoder)
        assert torch.allclose(model.decode(source, memory, target, decoder), model(source, target), atol=1e-6)
        stream = model.embed("source", source.tokens, Places(source.positions, source.longest))
        attention = model.get_submodule("encoder.0.attention")
        assert isinstance(attention, SelfAttention)
        queries, keys, _ = attention.project(stream, None)
    assert [tuple(each.shape) for each in encoder.weights] == [(1, 4, 4, 4)] * 2
    assert [tuple(each.shape) for each in decoder.weights] == [(1, 4, 3, 3), (1, 4, 3, 4)] * 2
    for head in range(4):
        for query in range(4):
            products = torch.stack([queries[query, head] @ keys[key, head // 2] for key in range(4)]) / 2
            expected = products.exp() / products.exp().sum()
            assert torch.allclose(encoder.weights[0][0, head, query], expected, atol=1e-5)
    assert decoder.weights[0].triu(1).count_nonzero() == 0
