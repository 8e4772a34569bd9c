"""Word alignments of an engine, compared with plain loops over the attention of single sentences."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.config.decoding import DecodingConfig
from nmt.config.keys import with_values
from nmt.config.registry import CHOICES
from nmt.config.saved import from_yaml
from nmt.config.tree import Config
from nmt.decoding.attention import Attention, align, compute_attention
from nmt.decoding.load import load
from nmt.decoding.torch_engine import TorchEngine
from nmt.text.alignments import Link
from tests.unit.small_models import LINES, make_model, make_tokenizer
from tests.unit.text.test_words import plain
from tests.unit.tiny_run import write_tiny_run

TOKENIZER = make_tokenizer()
SEARCH = DecodingConfig(beam=3, nbest=2, extra_length=4, alignments=True)
TARGETS = [*LINES[1:], LINES[0]]


@pytest.fixture(scope="module", params=CHOICES["model.architecture"])
def engine(request: pytest.FixtureRequest) -> TorchEngine:
    model = make_model(TOKENIZER, architecture=request.param, layers=3)
    return TorchEngine([model], TOKENIZER, SEARCH, torch.device("cpu"))


def plain_links(found: Attention, source: str, target: str, *, guided: bool = False) -> Iterator[Link]:
    """Link each target word to the source word with the largest sum of attention over pieces of both."""
    layers, heads = ([1], [0]) if guided else ([1, 2], range(found.cross.shape[1]))
    for index, target_pieces in enumerate(plain(TOKENIZER, target)):
        sums = [
            sum(
                float(found.cross[layer, head, row + guided, column])
                for layer in layers for head in heads for row in target_pieces for column in source_pieces
            )
            for source_pieces in plain(TOKENIZER, source)
        ]  # fmt: skip
        yield sums.index(max(sums)), index


@pytest.mark.parametrize("guided", [False, True])
def test_a_word_is_linked_to_the_word_that_it_attends_to_most(engine: TorchEngine, guided: bool) -> None:
    aligning = engine.with_search(SEARCH, 1)
    aligning.guided = guided
    expected = [
        tuple(plain_links(compute_attention(engine.models[0], TOKENIZER, *pair), *pair, guided=guided))
        for pair in zip(LINES, TARGETS, strict=True)
    ]
    assert align(aligning, LINES, TARGETS) == expected


def test_every_candidate_has_the_alignment_of_its_text(engine: TorchEngine) -> None:
    lines = [LINES[0], "", LINES[3], "  "]
    for line, translation in zip(lines, engine.translate(lines), strict=True):
        for candidate in translation.candidates:
            pair = compute_attention(engine.models[0], TOKENIZER, line, candidate.text)
            expected = plain_links(pair, line, candidate.text) if line.split() else ()
            assert candidate.alignment == tuple(expected)
    assert next(engine.translate(LINES)).candidates[1].alignment


def test_a_sentence_that_is_too_long_is_aligned_as_far_as_it_is_read() -> None:
    model = make_model(TOKENIZER, positions="learned", max_positions=6)
    engine = TorchEngine([model], TOKENIZER, SEARCH, torch.device("cpu"))
    (pieces,) = TOKENIZER.encode_source([LINES[2]])
    read = len(TOKENIZER.decode(pieces[:5]).split())
    (found,) = align(engine, [LINES[2]], [LINES[2]])
    assert [target for _, target in found] == list(range(read))
    assert all(source < read for source, _ in found)


def test_the_head_that_a_run_has_trained_aligns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_tiny_run(tmp_path)
    assert not load(run, device="cpu").engine.guided

    def guided(text: str) -> Config:
        return with_values(from_yaml(text), {"data.train_alignments": "links", "training.guided_weight": 0.05})

    monkeypatch.setattr("nmt.runs.checkpoint.from_yaml", guided)
    assert load(run, device="cpu").engine.guided
