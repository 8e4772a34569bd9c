"""Word alignments of an engine, compared with plain loops over the attention of single sentences."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from nmt.config.choices import CHOICES
from nmt.config.compose import compose
from nmt.config.schema import DecodingConfig
from nmt.decoding.attention import Attention, compute_attention
from nmt.decoding.beam import Hypothesis
from nmt.decoding.constraints import Constraints
from nmt.decoding.engine import Engine
from nmt.decoding.load_engine import adapted
from nmt.decoding.piece_attention import PieceAttention, attend
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.features.alignments.linking import AlignmentSource, links, links_by_source
from nmt.text.alignments import Link
from tests.unit.small_models import LINES, make_model, make_tokenizer
from tests.unit.text.test_word_pieces import plain

TOKENIZER = make_tokenizer()
SEARCH = DecodingConfig(beam=3, nbest=2, extra_length=4, alignments=True, alignment_layer=2)  # type: ignore[call-arg]
TARGETS = [*LINES[1:], LINES[0]]


def changed(**settings: Any) -> DecodingConfig:
    """The settings of the search with some replaced."""
    return replace(SEARCH, **settings)


@pytest.fixture(scope="module", params=CHOICES["model.architecture"])
def engine(request: pytest.FixtureRequest) -> TorchEngine:
    model = make_model(TOKENIZER, architecture=request.param, layers=3)
    return TorchEngine([model], TOKENIZER, SEARCH, torch.device("cpu"))


def plain_links(found: Attention, source: str, target: str, choice: AlignmentSource) -> Iterator[Link]:
    """Link each target word to the source word with the largest sum of attention over pieces of both."""
    layers, heads = found.cross.shape[:2]
    chosen_layers = range(layers)[-2:] if choice.layer == 0 else [choice.layer - 1]
    chosen_heads = range(heads) if choice.head == 0 else [choice.head - 1]
    for index, target_pieces in enumerate(plain(TOKENIZER, target)):
        sums = [
            sum(
                float(found.cross[layer, head, row + (choice.state == "input"), column])
                for layer in chosen_layers for head in chosen_heads for row in target_pieces for column in source_pieces
            )
            for source_pieces in plain(TOKENIZER, source)
        ]  # fmt: skip
        yield sums.index(max(sums)), index


@pytest.mark.parametrize("choice", [AlignmentSource(0, 0, "output"), AlignmentSource(1, 0, "input"),
                                    AlignmentSource(3, 4, "output")])  # fmt: skip
def test_a_word_is_linked_to_the_word_that_it_attends_to_most(engine: TorchEngine, choice: AlignmentSource) -> None:
    settings = changed(alignment_layer=choice.layer, alignment_head=choice.head, alignment_state=choice.state)
    found = attend(engine.with_search(settings, 1), LINES, TARGETS, lambda _, pair: links(pair, settings))
    listed = attend(engine, LINES, TARGETS, lambda _, pair: dict(links_by_source(pair))[choice])
    expected = [
        tuple(plain_links(compute_attention(engine.models[0], TOKENIZER, *pair), *pair, choice))
        for pair in zip(LINES, TARGETS, strict=True)
    ]
    assert found == listed == expected


def test_every_candidate_has_the_alignment_of_its_text(engine: TorchEngine) -> None:
    lines = [LINES[0], "", LINES[3], "  "]
    for line, translation in zip(lines, engine.translate(lines), strict=True):
        for candidate in translation.candidates:
            pair = compute_attention(engine.models[0], TOKENIZER, line, candidate.text)
            expected = plain_links(pair, line, candidate.text, AlignmentSource(2, 0, "output")) if line.split() else ()
            assert candidate.details["alignment"] == tuple(expected)
    assert next(engine.translate(LINES)).candidates[1].details["alignment"]


@pytest.mark.parametrize("batch_tokens", [1, 20, 4096])
def test_batches_do_not_change_alignments(engine: TorchEngine, batch_tokens: int) -> None:
    pairs = LINES * 3, TARGETS * 3
    found = attend(
        engine.with_search(changed(batch_tokens=batch_tokens), 1), *pairs, lambda _, pair: dict(links_by_source(pair))
    )
    assert found == attend(engine, *pairs, lambda _, pair: dict(links_by_source(pair)))


def test_a_sentence_that_is_too_long_is_aligned_as_far_as_it_is_read() -> None:
    model = make_model(TOKENIZER, positions="learned", max_positions=6)
    engine = TorchEngine([model], TOKENIZER, SEARCH, torch.device("cpu"))
    (pieces,) = TOKENIZER.encode_source([LINES[2]])
    read = len(TOKENIZER.decode_source(pieces[:5]).split())
    ((found,),) = [attend(engine, [LINES[2]], [LINES[2]], lambda _, pair: links(pair, SEARCH))]
    assert [target for _, target in found] == list(range(read))
    assert all(source < read for source, _ in found)


def test_attention_is_not_computed_if_alignments_are_off(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("attention was computed")

    monkeypatch.setattr(TorchEngine, "cross_attention", fail)
    off = engine.with_search(changed(alignments=False), 1)
    assert all(not each.details for found in off.translate(LINES) for each in found.candidates)
    with pytest.raises(AssertionError, match="attention was computed"):
        list(engine.translate(LINES))


def test_translations_do_not_depend_on_alignments(engine: TorchEngine) -> None:
    off = engine.with_search(changed(alignments=False), 1)
    texts = [[[(each.text, each.score) for each in found.candidates] for found in each.translate(LINES)]
             for each in (engine, off)]  # fmt: skip
    assert texts[0] == texts[1]


class Blind(Engine):
    """An engine that shows no attention."""

    name = "blind"
    device = torch.device("cpu")

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """Find nothing."""
        raise NotImplementedError

    def label_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """Score nothing."""
        raise NotImplementedError


def test_an_engine_without_attention_refuses_before_it_translates() -> None:
    with pytest.raises(UserError, match="only engine=torch aligns words"):
        Blind(TOKENIZER, SEARCH).prepare_search(1)
    assert not Blind(TOKENIZER, changed(alignments=False)).with_search(DecodingConfig(), 1).details


def test_a_candidate_has_its_alignment_as_an_attribute(engine: TorchEngine) -> None:
    aligned, plain = (each.translate(LINES) for each in (engine, engine.with_search(DecodingConfig(), 1)))
    (candidate, *_), (other, *_) = next(aligned).candidates, next(plain).candidates
    assert getattr(candidate, "alignment") == candidate.details["alignment"] != ()  # noqa: B009 - as programs may
    assert getattr(other, "alignment") == ()  # noqa: B009
    assert pickle.loads(pickle.dumps(candidate)) == candidate
    assert not hasattr(candidate, "aligned")


def test_words_without_pieces_have_no_links() -> None:
    nothing = PieceAttention(torch.zeros(1, 1, 1, 1).numpy(), [], [])
    assert links(nothing, DecodingConfig()) == ()
    assert links(PieceAttention(torch.zeros(1, 1, 1, 1).numpy(), [[]], [[]]), DecodingConfig()) == ()


def test_the_head_that_a_run_has_trained_aligns_by_default() -> None:
    usual = compose(["experiment=demo"])
    settings = ["data.train_alignments=demo", "training.guided_weight=0.05", "training.guided_head=3"]
    trained, plain_search = compose(["experiment=demo", *settings]), DecodingConfig(beam=2)
    layers, heads = trained.model.decoder_depth, trained.model.heads
    found = AlignmentSource.chosen(adapted(plain_search, trained), layers, heads)
    assert found == AlignmentSource(1, 3, "input")
    assert adapted(plain_search, trained).beam == 2
    assert adapted(plain_search, usual) == plain_search
    assert adapted(SEARCH, trained) == SEARCH
