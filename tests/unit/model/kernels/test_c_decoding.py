"""The operations in C that translate, against PyTorch in float64 and against the plain model."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.config import registry
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES, load
from nmt.decoding.beam import Hypothesis, beam_search
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.kernels.c import library
from nmt.model.kernels.c.compile import compiled
from nmt.model.kernels.c.products import PackedMatrix, scratch_for
from nmt.model.modules import LayerNorm
from nmt.model.packed import Packed
from nmt.model.transformer import Transformer
from nmt.model.translator import Translator, can_translate
from nmt.model.translator_batch import Batch
from nmt.text.special import BOS, EOS
from tests.unit.decoding.toys import search_with

pytestmark = [pytest.mark.usefixtures("in_c")]
VOCABULARY = 150
SENTENCES = [[3 + 7 * place % 100 for place in range(count)] for count in (4, 19, 1, 7, 12)]
SOURCES = Packed.from_sentences(SENTENCES)
LIMIT = 25
Found = list[list[Hypothesis]]


def product(matrix: PackedMatrix, rows: Tensor, *, rectify: bool = False) -> Tensor:
    """Return x W^T + b, or the ReLU of it."""
    result, scratch = torch.empty(len(rows), matrix.outputs), scratch_for(len(rows), matrix.inputs)
    matrix.library.use_pool(torch.get_num_threads())
    to = result.data_ptr(), int(rectify), scratch.data_ptr()
    matrix.library.multiply(ctypes.byref(matrix.structure), rows.data_ptr(), len(rows), *to)
    return result


def rounded(rows: Tensor, numbers: torch.dtype) -> Tensor:
    """Round to bf16, or each row to whole multiples of 1/127 of its largest number."""
    if numbers != torch.int8:
        return rows.to(numbers).double()
    largest = rows.abs().amax(1, keepdim=True)
    return (rows * (127 / largest.clamp(min=1e-30))).round().double() * largest.double() / 127


@pytest.mark.parametrize("rows", [1, 6, 97])
@pytest.mark.parametrize(("inputs", "outputs", "rectify"), [(48, 64, False), (4, 1, True), (132, 95, True)])
@pytest.mark.parametrize("numbers", [torch.float32, torch.bfloat16, torch.int8])
def test_a_product_is_exact_but_for_the_rounding(
    rows: int, inputs: int, outputs: int, rectify: bool, numbers: torch.dtype
) -> None:
    random = torch.Generator().manual_seed(rows)
    weight, stream = torch.randn(outputs, inputs, generator=random), torch.randn(rows, inputs, generator=random)
    weight[0], stream[0] = 0, 0
    bias = torch.randn(outputs, generator=random) if rows > 6 else None
    exact = F.linear(rounded(stream, numbers), rounded(weight, numbers), None if bias is None else bias.double())
    found = product(PackedMatrix(weight, bias, numbers), stream, rectify=rectify)
    torch.testing.assert_close(found.double(), exact.relu() if rectify else exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("numbers", [torch.float32, torch.bfloat16, torch.int8])
def test_a_product_does_not_hide_nan_or_infinity(numbers: torch.dtype) -> None:
    stream = torch.randn(4, 16)
    stream[1, 5], stream[2, 7] = torch.nan, -torch.inf
    found = product(PackedMatrix(torch.randn(40, 16), None, numbers), stream)
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
    here = product(PackedMatrix(weight, bias, numbers), stream)
    fewer = compiled(("-DFLOAT32", *options.split()))
    if fewer is None:
        pytest.skip("this compiler has no such options")
    declared = library._declared(fewer)
    monkeypatch.setattr("nmt.model.kernels.c.products.library", lambda like: declared)
    tolerance = 1e-6 if numbers == torch.int8 else 1e-5  # sums of integers are exact
    torch.testing.assert_close(product(PackedMatrix(weight, bias, numbers), stream), here, rtol=1e-6, atol=tolerance)


few_threads = pytest.mark.parametrize("in_c", [1, 3], indirect=True, ids="{} threads".format)  # more take long

POSITIONS = {name: load("model.positions", name) for name in CHOICES["model.positions"]}
CONFIGS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"norm_placement": "pre"},
    **{name: {"positions": name, "norm_placement": "pre"} for name, kind in POSITIONS.items() if kind.rotates},
    "shared heads": {"kv_heads": 2, "d_v": 48, "positions": "learned"},
    "odd words": {"output_bias": True, "decoder_layers": 1, "tie_embeddings": False},
    "modern": {"norm": "rms", "norm_placement": "pre", "activation": "swiglu"},
    "gelu": {"activation": "gelu"},
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


def translate(model: TranslationModel, numbers: torch.dtype, beam: int, sentences: list[list[int]]) -> Found:
    """Translate by calls of C only, and keep the whole beam."""
    batch = Batch(Translator(model, numbers, 64), sentences, len(sentences) * beam, LIMIT)
    limits = [LIMIT - place for place in range(len(sentences))]
    return beam_search(partial(batch.choose, beam=beam), limits, beam=beam, alpha=0.6, nbest=beam)


@cache
def expected_translations(config: str, beam: int) -> Found:
    """Return those of the plain model, which any number of threads must give."""
    model = random_model(**CONFIGS[config])
    with torch.inference_mode():
        scorer = partial(model.advance, state=model.start(SOURCES))
        limits = [LIMIT - place for place in range(len(SENTENCES))]
        return search_with(scorer, limits, beam=beam, alpha=0.6, nbest=beam)


@few_threads
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("config", CONFIGS)
def test_translations_equal_those_of_the_plain_model(config: str, beam: int) -> None:
    model = random_model(**CONFIGS[config])
    assert can_translate(model)
    found = translate(model, torch.float32, beam, SENTENCES)
    for one, other in zip(found, expected_translations(config, beam), strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other], rel=1e-4)


class Unlike(Transformer):
    """A model of a user: a Transformer that computes something else."""

    def logits(self, output: Tensor) -> Tensor:
        return -super().logits(output)


class UnlikeNorm(LayerNorm):
    """A norm of a user."""


@pytest.mark.parametrize(("setting", "code"), [("architecture", Unlike), ("norm", UnlikeNorm)])
def test_models_of_users_are_not_taken_for_those_that_they_extend(
    setting: str, code: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {setting: f"{__name__}:{code.__name__}"}
    monkeypatch.setattr(registry, "trusted", {(f"model.{setting}", settings[setting])})
    assert not can_translate(random_model(**settings))


@few_threads
@pytest.mark.parametrize(("numbers", "tolerance"), [(torch.bfloat16, 0.03), (torch.int8, 0.06)])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_rounded_search_scores_what_it_finds_nearly_as_the_plain_model_does(
    config: dict[str, Any], numbers: torch.dtype, tolerance: float
) -> None:
    model = random_model(**config)
    found = zip(SENTENCES, translate(model, numbers, 3, SENTENCES), strict=True)
    pairs = [(sentence, each) for sentence, hypotheses in found for each in hypotheses]
    source = Packed.from_sentences([sentence for sentence, _ in pairs])
    target = Packed.from_sentences([[BOS, *each.tokens] for _, each in pairs])
    labels = torch.tensor([label for _, each in pairs for label in (*each.tokens, EOS)])
    with torch.inference_mode():
        scores = model.logits(model(source, target)).log_softmax(1)[torch.arange(len(labels)), labels]
    for (_, each), expected in zip(pairs, scores.split([len(each.tokens) + 1 for _, each in pairs]), strict=True):
        assert each.log_probability == pytest.approx(float(expected.sum()), abs=tolerance * len(expected))


@few_threads
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_scores_of_rows_that_leave_and_change_places_are_those_of_full_passes(config: dict[str, Any]) -> None:
    """Also of more rows and steps than there are slots at first, and of a long source."""
    model, random = random_model(**config), torch.Generator().manual_seed(4)
    sentences = [*SENTENCES, [3 + place % 90 for place in range(200)]]
    owners = [index for index in range(len(sentences)) for _ in range(2)]
    batch, prefixes = (
        Batch(Translator(model, torch.float32, 256), sentences, 40, 40, copies=2),
        [list[int]() for _ in owners],
    )
    for step in range(40):
        rows = sorted(torch.randint(len(owners), (40 - step // 2,), generator=random).tolist())
        parents = torch.tensor(rows) if step else torch.arange(len(owners))
        tokens = torch.randint(VOCABULARY, (len(parents),), generator=random)
        owners = [owners[parent] for parent in parents]
        prefixes = [[*prefixes[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        scores = batch.scores(tokens, parents)
        if step % 13 == 0:
            source = Packed.from_sentences([sentences[owner] for owner in owners])
            with torch.no_grad():
                full = model.logits(model(source, Packed.from_sentences(prefixes))).unflatten(0, (len(owners), -1))
            torch.testing.assert_close(scores, full[:, -1], rtol=0, atol=1e-3)


@few_threads
@pytest.mark.parametrize("vocabulary", [8, 64, 65, 1000])
def test_continuations_are_the_most_probable_of_all_in_float64(vocabulary: int) -> None:
    torch.manual_seed(vocabulary)
    config = ModelConfig(layers=1, d_model=64, d_ff=64, heads=4)
    translator = Translator(build_model(config, vocabulary, vocabulary), torch.float32, 16)
    sentences, beam = [[3], [4, 5], [6]], 3
    scoring, choosing = (Batch(translator, sentences, 9, 8) for _ in range(2))
    tokens, parents, open_ = np.full(3, BOS), np.arange(3), np.zeros((3, 1), np.float32)
    for _ in range(3):
        must_end = np.array([False, False, len(tokens) > 3])
        scores = scoring.scores(torch.from_numpy(tokens), torch.from_numpy(parents)).double().log_softmax(1)
        scores[:, [1, 2]] = -torch.inf
        width = len(tokens) // 3
        if must_end[2]:
            scores[2 * width :, torch.arange(vocabulary) != EOS] = -torch.inf
        everything = (scores.view(3, width, -1) + torch.from_numpy(open_)[:, :, None]).flatten(1)
        found, chosen, rows = choosing.choose(tokens, parents, open_, must_end, beam)
        truth = everything.topk(beam + 1 if width == 1 else beam, dim=1)
        count = truth.values.shape[1]
        torch.testing.assert_close(torch.from_numpy(found[:, :count]).double(), truth.values, rtol=0, atol=1e-5)
        finite = truth.values.isfinite()
        assert torch.equal(torch.from_numpy(chosen[:, :count])[finite], (truth.indices % vocabulary)[finite])
        local = truth.indices // vocabulary + width * torch.arange(3)[:, None]
        assert torch.equal(torch.from_numpy(rows[:, :count])[finite], local[finite])
        open_, tokens, parents = found[:, :beam].copy(), chosen[:, :beam].flatten(), rows[:, :beam].flatten()


def test_several_threads_translate_at_the_same_time() -> None:
    model = random_model()
    expected = translate(model, torch.float32, 3, SENTENCES)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: translate(model, torch.float32, 3, SENTENCES), range(8)))
    assert all(each == expected for each in found)
