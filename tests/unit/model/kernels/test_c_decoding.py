"""The operations in C that translate, against PyTorch in float64 and against the plain model."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES, load
from nmt.decoding.beam import Hypothesis, NextTokenScorer, beam_search, ensemble_scorers
from nmt.model.backends.chosen import using
from nmt.model.backends.eager import Eager
from nmt.model.build import build_model
from nmt.model.cpu import prepared_weights
from nmt.model.cpu.prepared_weights import prepare_for_cpu
from nmt.model.interface import TranslationModel
from nmt.model.kernels.c import library
from nmt.model.kernels.c.compile import compiled
from nmt.model.kernels.c.continuations import choose_continuations, chooses_in_c
from nmt.model.kernels.c.products import PackedMatrix
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS

pytestmark = [pytest.mark.usefixtures("in_c")]
VOCABULARY = 150
SENTENCES = [[3 + 7 * place % 100 for place in range(count)] for count in (4, 19, 1, 7, 12)]
SOURCES = Packed.from_sentences(SENTENCES)
TARGETS = Packed.from_sentences([[2, 7, 9], [2], [2, 30], [2, 4], [2, 90, 91, 92]])


@pytest.mark.parametrize("rows", [1, 6, 13, 97])
@pytest.mark.parametrize(("inputs", "outputs"), [(48, 64), (7, 1), (16, 33), (130, 95)])
@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_product_equals_that_in_float64(rows: int, inputs: int, outputs: int, rectify: bool, has_bias: bool) -> None:
    random = torch.Generator().manual_seed(rows)
    weight, stream = torch.randn(outputs, inputs, generator=random), torch.randn(rows, 2 * inputs, generator=random)
    bias = torch.randn(outputs, generator=random) if has_bias else None
    stream = stream[:, ::2]
    expected = F.linear(stream.double(), weight.double(), None if bias is None else bias.double())
    found = PackedMatrix(weight, bias).product(stream, rectify=rectify)
    torch.testing.assert_close(found.double(), expected.relu() if rectify else expected, rtol=0, atol=1e-4)


def test_a_product_does_not_hide_nan() -> None:
    stream = torch.randn(3, 16)
    stream[1, 5] = torch.nan
    for rectify in (False, True):
        found = PackedMatrix(torch.randn(40, 16), None).product(stream, rectify=rectify)
        assert found.isnan().all(1).tolist() == [False, True, False]


@pytest.mark.parametrize("rows", [1, 16, 33, 97])
@pytest.mark.parametrize(("inputs", "outputs"), [(48, 64), (7, 1), (16, 33), (130, 95)])
@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_product_in_bf16_is_exact_but_for_the_rounding(
    rows: int, inputs: int, outputs: int, rectify: bool, has_bias: bool
) -> None:
    random = torch.Generator().manual_seed(rows)
    weight, stream = torch.randn(outputs, inputs, generator=random), torch.randn(rows, 2 * inputs, generator=random)
    bias = torch.randn(outputs, generator=random) if has_bias else None
    stream = stream[:, ::2]
    exact = F.linear(in_bf16(stream), in_bf16(weight), None if bias is None else bias.double())
    found = PackedMatrix(weight, bias, torch.bfloat16).product(stream, rectify=rectify)
    torch.testing.assert_close(found.double(), exact.relu() if rectify else exact, rtol=0, atol=1e-4)


def in_bf16(numbers: Tensor) -> Tensor:
    """Round to bf16."""
    return numbers.bfloat16().double()


@pytest.mark.parametrize("rows", [1, 6, 13, 97])
@pytest.mark.parametrize(("inputs", "outputs"), [(48, 64), (4, 1), (16, 33), (132, 95)])
@pytest.mark.parametrize("rectify", [False, True])
def test_a_product_in_int8_is_exact_but_for_the_rounding(rows: int, inputs: int, outputs: int, rectify: bool) -> None:
    random = torch.Generator().manual_seed(rows)
    weight, stream = torch.randn(outputs, inputs, generator=random), torch.randn(rows, inputs, generator=random)
    weight[0], stream[0] = 0, 0
    bias = torch.randn(outputs, generator=random)
    expected = F.linear(rounded(stream), rounded(weight), bias.double())
    found = PackedMatrix(weight, bias, torch.int8).product(stream, rectify=rectify)
    torch.testing.assert_close(found.double(), expected.relu() if rectify else expected, rtol=0, atol=1e-4)


def rounded(rows: Tensor) -> Tensor:
    """Round each row to whole multiples of 1/127 of its largest number."""
    largest = rows.abs().amax(1, keepdim=True)
    return (rows * (127 / largest.clamp(min=1e-30))).round().double() * largest.double() / 127


def test_a_matrix_whose_width_int8_cannot_have_stays_in_float32() -> None:
    stream, weight = torch.randn(3, 7), torch.randn(5, 7)
    found = PackedMatrix(weight, None, torch.int8).product(stream)
    torch.testing.assert_close(found.double(), F.linear(stream.double(), weight.double()), rtol=0, atol=1e-5)


@pytest.mark.parametrize("numbers", [torch.bfloat16, torch.int8])
def test_a_rounded_product_does_not_hide_nan_or_infinity(numbers: torch.dtype) -> None:
    stream = torch.randn(4, 16)
    stream[1, 5], stream[2, 7] = torch.nan, -torch.inf
    found = PackedMatrix(torch.randn(40, 16), None, numbers).product(stream)
    assert found.isfinite().all(1).tolist() == [True, False, False, True]
    assert not found[1:3].isfinite().any()


@pytest.mark.parametrize(
    ("numbers", "options"),
    [
        (torch.int8, "-DWITHOUT_VNNI"),
        (torch.int8, "-DWITHOUT_VNNI -mno-avx2 -mno-avx512f"),
        (torch.bfloat16, "-mno-amx-bf16"),
        (torch.bfloat16, "-mno-amx-bf16 -mno-avx512bf16"),
        (torch.bfloat16, "-mno-avx512f"),
    ],
)
@pytest.mark.parametrize("in_c", [1], indirect=True)
def test_rounded_products_are_the_same_with_fewer_instructions(
    numbers: torch.dtype, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, weight, bias = torch.randn(43, 52), torch.randn(70, 52), torch.randn(70)
    here = PackedMatrix(weight, bias, numbers).product(stream)
    fewer = compiled(("-DFLOAT32", *options.split()))
    if fewer is None:
        pytest.skip("this compiler has no such options")
    declared = library._declared(fewer)
    monkeypatch.setattr("nmt.model.kernels.c.products.library", lambda like: declared)
    tolerance = 1e-6 if numbers == torch.int8 else 1e-5  # sums of integers are exact
    torch.testing.assert_close(PackedMatrix(weight, bias, numbers).product(stream), here, rtol=1e-6, atol=tolerance)


@pytest.mark.parametrize("width", [8, 63, 64, 65, 1000, 8003])
@pytest.mark.parametrize(("sentences", "beam"), [(1, 1), (1, 5), (3, 4)])
def test_continuations_are_the_most_probable_of_all_in_float64(width: int, sentences: int, beam: int) -> None:
    random = torch.Generator().manual_seed(width)
    scores = 5 * torch.randn(sentences * beam, width, generator=random)
    open_ = 3 * torch.randn(sentences, beam, generator=random)
    expected = scores.double().log_softmax(1)
    expected[:, [1, 2]] = -torch.inf
    all_of_sentence = (expected.view(sentences, beam, width) + open_[:, :, None]).flatten(1)
    truth = all_of_sentence.topk(beam + 1, dim=1)
    totals, tokens, parents = choose_continuations(scores, open_, beam + 1, beam + 1, never=(1, 2))
    torch.testing.assert_close(totals.double(), truth.values, rtol=0, atol=1e-5)
    assert torch.equal(tokens, truth.indices % width)
    first_rows = beam * torch.arange(sentences)[:, None]
    assert torch.equal(parents, first_rows + truth.indices // width)


def test_a_row_gives_no_more_tokens_than_it_may() -> None:
    scores, open_ = torch.randn(2, 100), torch.tensor([[0.0, -1000.0]])
    totals, tokens, parents = choose_continuations(scores, open_, 3, 6, never=())
    assert parents.tolist() == [[0, 0, 0, 1, 1, 1]]
    assert tokens.view(2, 3).tolist() == scores.topk(3, dim=1).indices.tolist()
    assert (totals[0, :3] > -100).all()
    assert (totals[0, 3:] < -900).all()


def test_scores_that_are_not_finite_have_no_finite_log_probabilities() -> None:
    scores = torch.randn(4, 100)
    scores[1, 70] = torch.nan
    scores[2, 70] = torch.inf
    scores[3, 4:] = -torch.inf
    totals, tokens, _ = choose_continuations(scores, torch.zeros(4, 1), 3, 3, never=(1, 2))
    assert totals[0].isfinite().all()
    assert not totals[1:3].isfinite().any()
    assert totals[3].isfinite().tolist() == [True, True, False]
    assert sorted(tokens[3, :2].tolist()) == [0, 3]
    assert not chooses_in_c(scores.double())


def test_hypotheses_that_are_closed_or_not_a_number_hide_no_other_row() -> None:
    scores, open_ = torch.randn(3, 100), torch.tensor([[-torch.inf, -1.0, torch.nan]])
    totals, _, parents = choose_continuations(scores, open_, 4, 6, never=())
    assert totals[0, :4].isnan().all()
    assert parents.tolist() == [[2, 2, 2, 2, 1, 1]]


few_threads = pytest.mark.parametrize("in_c", [1, 3], indirect=True, ids="{} threads".format)  # more take long

POSITIONS = {name: load("model.positions", name) for name in CHOICES["model.positions"]}
CONFIGS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"norm_placement": "pre"},
    **{name: {"positions": name, "norm_placement": "pre"} for name, kind in POSITIONS.items() if kind.rotates},
    "shared heads": {"kv_heads": 2, "d_v": 48, "positions": "learned"},
    "odd words": {"output_bias": True, "decoder_layers": 1},
}
UNKNOWN: dict[str, dict[str, Any]] = {
    "odd width": {"d_model": 40, "heads": 4},
    "RMSNorm": {"norm": "rms"},
    "gated": {"activation": "swiglu"},
    **{name: {"positions": name} for name, kind in POSITIONS.items() if kind.biases_scores},
    **{name: {"architecture": name} for name in CHOICES["model.architecture"] if name != "transformer"},
}


def random_model(seed: int = 1, **settings: Any) -> TranslationModel:
    """Return a model with pronounced probabilities."""
    torch.manual_seed(seed)
    config = ModelConfig(**{"layers": 2, "d_model": 64, "d_ff": 96, "heads": 4, **settings})
    model = build_model(config, VOCABULARY, VOCABULARY)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


@contextmanager
def without_operations() -> Iterator[None]:
    library.use_operations(())
    with using(Eager()):
        yield
    library.use_operations(library.DEFINITIONS)


def scorer_of(models: list[TranslationModel], copies: int) -> NextTokenScorer:
    """Return the scorer of an ensemble of prepared models."""
    scorers = []
    for model in models:
        state = model.start(SOURCES)
        state.repeat(copies)
        scorers.append(partial(model.advance, state=state))
    return ensemble_scorers(scorers)


def search(models: list[TranslationModel], beam: int, copies: int = 1) -> list[list[Hypothesis]]:
    """Translate with a beam, and keep all of it."""
    limits = torch.full((copies * SOURCES.sentences,), 25)
    with torch.inference_mode():
        prepared = [prepare_for_cpu(model, torch.float32) for model in models]
        return beam_search(scorer_of(prepared, copies), limits, beam=beam, alpha=0.6, nbest=beam)


def search_without_operations(models: list[TranslationModel], beam: int, copies: int = 1) -> list[list[Hypothesis]]:
    with without_operations():
        return search(models, beam, copies)


@cache
def expected_translations(config: str, beam: int) -> list[list[Hypothesis]]:
    """Return those of the plain model, which any number of threads must give."""
    return search_without_operations([random_model(**CONFIGS[config])], beam)


def assert_same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other], rel=1e-4)


@few_threads
@pytest.mark.parametrize("beam", [1, 3, 5])
@pytest.mark.parametrize("config", CONFIGS)
def test_translations_equal_those_of_the_plain_model(config: str, beam: int) -> None:
    model = random_model(**CONFIGS[config])
    prepared = prepare_for_cpu(model, torch.float32)
    assert isinstance(prepared, TranslationModel)
    assert prepared.fused_encoder is not None
    assert prepared.fused_decoder is not None
    assert_same(search([model], beam), expected_translations(config, beam))


@few_threads
@pytest.mark.parametrize(("precision", "int8", "largest"), [(torch.float32, True, 0.1), (torch.bfloat16, False, 0.03)])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_rounded_layers_equal_their_products_one_by_one(
    config: dict[str, Any], precision: torch.dtype, int8: bool, largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(**config)
    with torch.inference_mode():
        fused, exact = prepare_for_cpu(model, precision, int8=int8), model(SOURCES, TARGETS)
        assert isinstance(fused, TranslationModel)
        assert fused.fused_decoder is not None
        monkeypatch.setattr(prepared_weights, "fuse", lambda model: None)
        found = [each(SOURCES, TARGETS) for each in (fused, prepare_for_cpu(model, precision, int8=int8))]
    # a sum that differs in its last digit may be rounded to the next number
    assert (found[0] - found[1]).abs().mean() < 0.002
    assert 0 < (found[0] - exact).abs().mean() < largest


@few_threads
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("config", [{"norm_placement": "pre"}, *UNKNOWN.values()], ids=["pre-norm", *UNKNOWN])
def test_a_search_in_bf16_scores_what_it_finds_as_the_plain_model_does(config: dict[str, Any], beam: int) -> None:
    model = random_model(**config)
    limits = torch.full((SOURCES.sentences,), 25)
    with torch.inference_mode():
        scorer = scorer_of([prepare_for_cpu(model, torch.bfloat16)], 1)
        for sentence, (best,) in zip(SENTENCES, beam_search(scorer, limits, beam=beam, alpha=0.6), strict=True):
            labels = torch.tensor([*best.tokens, EOS])
            target = Packed.from_sentences([[BOS, *best.tokens]])
            scores = model.logits(model(Packed.from_sentences([sentence]), target)).log_softmax(1)
            expected = scores[torch.arange(len(labels)), labels].sum().item()
            assert best.log_probability == pytest.approx(expected, abs=0.03 * len(labels))


@few_threads
@pytest.mark.parametrize("config", UNKNOWN.values(), ids=UNKNOWN)
def test_other_architectures_use_only_products_in_c(config: dict[str, Any]) -> None:
    model = random_model(**config)
    assert getattr(prepare_for_cpu(model, torch.float32), "fused_decoder", None) is None
    assert_same(search([model], 3), search_without_operations([model], 3))


@few_threads
def test_an_ensemble_and_copies_of_sentences_give_the_same_translations() -> None:
    models = [random_model(seed, norm_placement="pre") for seed in (1, 2)]
    assert_same(search(models, 4, 3), search_without_operations(models, 4, 3))


@few_threads
def test_another_precision_has_no_operations() -> None:
    prepared = prepare_for_cpu(random_model(), torch.float16)
    assert isinstance(prepared, TranslationModel)
    assert prepared.fused_decoder is None


@few_threads
def test_a_prepared_model_translates_on_after_the_operations_are_switched_off() -> None:
    with torch.inference_mode():
        prepared = prepare_for_cpu(random_model(), torch.float32)
        tokens, parents = torch.full((5,), 2), torch.arange(5)
        expected: Tensor = prepared.advance(tokens, parents, prepared.start(SOURCES))
        with without_operations():
            assert torch.equal(prepared.advance(tokens, parents, prepared.start(SOURCES)), expected)


@few_threads
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("longest", [13, 200])
def test_the_encoder_equals_the_plain_one_for_short_and_long_sentences(config: dict[str, Any], longest: int) -> None:
    source = Packed.from_sentences([[3 + place % 90 for place in range(count)] for count in (4, longest, 1)])
    model = random_model(**config)
    prepared = prepare_for_cpu(model, torch.float32)
    with torch.inference_mode():
        expected = model.double()(source, source)
        found = prepared(source, source)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-3)
