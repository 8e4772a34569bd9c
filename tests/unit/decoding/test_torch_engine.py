"""The engine with small random models, compared with full forward passes of the model."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.decoding.translation import Request
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.text.special import BOS, EOS, PAD
from nmt.text.tokenizer import Tokenizer
from tests.unit.small_models import LINES as TEXT
from tests.unit.small_models import log_probabilities, make_model, make_tokenizer, next_log_probabilities

CPU = torch.device("cpu")
LINES = [*TEXT[:2], "", *TEXT[2:4], "   ", *TEXT[4:]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return make_tokenizer()


def translator(models: Sequence[TranslationModel], tokenizer: Tokenizer, **settings: float | str) -> TorchEngine:
    config = DecodingConfig(**{"extra_length": 6, "beam": 3, **settings})  # type: ignore[arg-type]
    return TorchEngine(models, tokenizer, config, CPU)


def test_greedy_translation_is_the_most_probable_token_each_time(tokenizer: Tokenizer) -> None:
    model = make_model(tokenizer)
    sources = tokenizer.encode_source([line for line in LINES if line.strip()])
    found = translator([model], tokenizer, beam=1).translate_ids(sources)
    for source, (hypothesis,) in zip(sources, found, strict=True):
        greedy: list[int] = []
        while len(greedy) < len(source) + 6:
            scores = next_log_probabilities(model, source, greedy)[-1]
            scores[[PAD, BOS]] = -math.inf
            if scores.argmax() == EOS:
                break
            greedy.append(int(scores.argmax()))
        assert hypothesis.tokens == greedy
    assert len({len(hypothesis.tokens) for (hypothesis,) in found}) > 1


@pytest.mark.parametrize("positions", CHOICES["model.positions"])
def test_scores_are_those_of_the_full_forward_pass(tokenizer: Tokenizer, positions: str) -> None:
    model = make_model(tokenizer, positions=positions)
    sources = tokenizer.encode_source([line for line in LINES if line.strip()])
    for source, hypotheses in zip(
        sources, translator([model], tokenizer, nbest=3, alpha=0.8).translate_ids(sources), strict=True
    ):
        assert len(hypotheses) == 3
        assert [each.score for each in hypotheses] == sorted((each.score for each in hypotheses), reverse=True)
        for hypothesis in hypotheses:
            expected = float(log_probabilities(model, source, hypothesis.tokens).sum())
            assert hypothesis.log_probability == pytest.approx(expected, rel=1e-4)
            assert hypothesis.score == pytest.approx(expected / ((6 + len(hypothesis.tokens)) / 6) ** 0.8, rel=1e-4)


def test_token_scores_are_those_of_the_full_forward_pass(tokenizer: Tokenizer) -> None:
    model = make_model(tokenizer)
    engine = translator([model], tokenizer, nbest=2, batch_tokens=40)
    plain = list(engine.translate(LINES))
    detailed = list(engine.translate([Request(line) for line in LINES], token_scores=True))
    for line, expected, found in zip(LINES, plain, detailed, strict=True):
        (source,) = tokenizer.encode_source([line])
        assert [each.text for each in found.candidates] == [each.text for each in expected.candidates]
        assert not any(each.tokens for each in expected.candidates)
        for candidate in found.candidates:
            ids = [tokenizer.vocabularies[1].index(token.piece) for token in candidate.tokens]
            assert tokenizer.decode(ids) == candidate.text
            expected_scores = log_probabilities(model, source, ids)[:-1].tolist()
            assert [token.log_probability for token in candidate.tokens] == pytest.approx(expected_scores, rel=1e-3)


@pytest.mark.parametrize(("threads", "window", "batch_tokens"), [(1, 1, 4096), (1, 3, 40), (1, 100, 4096), (4, 100, 1)])
def test_translations_do_not_depend_on_batches_and_threads(
    tokenizer: Tokenizer, threads: int, window: int, batch_tokens: int
) -> None:
    lines, model, told = LINES * 3, make_model(tokenizer, positions="alibi"), list[int]()
    alone = [next(translator([model], tokenizer, nbest=2).translate([line])) for line in LINES] * 3
    torch.set_num_threads(threads)
    engine = translator([model], tokenizer, nbest=2, batch_tokens=batch_tokens)
    together = list(engine.translate(lines, window=window, done=told.append))
    assert sum(told) == len(lines)
    for line, one, other in zip(lines, alone, together, strict=True):
        assert [each.text for each in other.candidates] == [each.text for each in one.candidates]
        scores = [each.score for each in one.candidates]
        assert [each.score for each in other.candidates] == pytest.approx(scores, rel=1e-4)
        assert bool(other.text) == bool(line.strip())


def test_a_line_that_is_too_long_is_truncated_with_a_warning(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model(tokenizer, positions="learned", max_positions=12)
    lines = ["a dog", "the cat sees " * 20, "it is small"]
    texts = [each.text for each in translator([model], tokenizer, extra_length=50).translate(lines)]
    assert texts[1]
    assert [texts[0], texts[2]] == [
        each.text for each in translator([model], tokenizer, extra_length=50).translate([lines[0], lines[2]])
    ]
    warnings = capsys.readouterr().err.strip().splitlines()
    assert len(warnings) == 1
    assert "line 2 has" in warnings[0]
    assert "11 that this model translates" in warnings[0]


def test_scores_of_sentences_that_are_too_long_are_those_of_their_beginnings_with_a_warning(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = translator([make_model(tokenizer, positions="learned", max_positions=12)], tokenizer)
    long = "the cat sees " * 20
    found = engine.score(["a dog", long, long], [long, "a dog", "a dog"])
    short = len(tokenizer.encode_target(["a dog"])[0]) + 1
    assert [each.tokens for each in found] == [12, short, short]
    warnings = capsys.readouterr().err.splitlines()
    assert [line.partition(" tokens")[0] for line in warnings] == [
        "warning: 2 source sentences have more than 11",
        "warning: 1 target sentences have more than 11",
    ]
    engine.score(["a dog"], ["a dog"])
    assert capsys.readouterr().err == ""


def test_an_ensemble_of_the_same_model_twice_equals_that_model(tokenizer: Tokenizer) -> None:
    one, other = make_model(tokenizer), make_model(tokenizer, seed=10)
    sources = tokenizer.encode_source(["the small cat sees a dog"])
    ((single,),) = translator([one], tokenizer).translate_ids(sources)
    ((twice,),) = translator([one, one], tokenizer).translate_ids(sources)
    ((both,),) = translator([one, other], tokenizer).translate_ids(sources)
    assert twice.tokens == single.tokens
    assert twice.log_probability == pytest.approx(single.log_probability, rel=1e-4)
    members = [log_probabilities(model, sources[0], both.tokens) for model in (one, other)]
    expected = float(torch.stack(members).exp().mean(0).log().sum())
    assert both.log_probability == pytest.approx(expected, rel=1e-4)


def test_a_diverged_model_is_an_error(tokenizer: Tokenizer) -> None:
    model = make_model(tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(math.nan)
    with pytest.raises(UserError, match="diverged"):
        list(translator([model], tokenizer).translate(["a dog"]))


def checkpoint(folder: Path, model: TranslationModel, tokenizer: Tokenizer) -> Checkpoint:
    tokenizer.save(folder)
    return Checkpoint(meta=CheckpointMeta(step=1, path=folder), weights=model.state_dict())


def test_a_checkpoint_of_another_vocabulary_or_shape_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = make_model(tokenizer)
    larger = build_model(model.config, tokenizer.source_size + 8, tokenizer.target_size + 8)
    with pytest.raises(UserError, match=r"vectors\.shared is \[68, 32\], not \[60, 32\]"):
        load_model(checkpoint(tmp_path, larger, tokenizer), model.config, CPU)
    with pytest.raises(UserError, match="another vocabulary or model shape"):
        load_model(checkpoint(tmp_path, model, tokenizer), ModelConfig(layers=3, d_model=16, d_ff=32, heads=2), CPU)


def test_a_checkpoint_with_the_tokenizers_of_another_run_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = make_model(tokenizer)
    tokenizer.save(tmp_path)
    two = make_tokenizer(joint=False)
    with pytest.raises(UserError, match="a vocabulary for each language"):
        load_model(checkpoint(tmp_path, model, two), model.config, CPU)
