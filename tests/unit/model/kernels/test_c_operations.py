"""The operations in C for CPUs, against PyTorch in float64."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES, load
from nmt.data.loader import MicroBatch
from nmt.model.attention import AttendInC, PaddedAttend
from nmt.model.attention_plan import AttentionSpec, plan_attention
from nmt.model.build import build_model
from nmt.model.cpu import dropout
from nmt.model.cpu.dropout import Dropout
from nmt.model.kernels.c import compile as compile_c
from nmt.model.kernels.c import library, rows
from nmt.model.kernels.c.attention import rotate
from nmt.model.kernels.rectifier import rectifier_gradient
from nmt.model.kernels.softmax import softmax_gradient_
from nmt.model.packed import Packed
from nmt.model.positions.sinusoidal import sinusoids
from nmt.model.working_weights import WorkingWeights
from nmt.training.objective import Objective
from tests.compiled_operations import compile_again
from tests.quick_processes import Running
from tests.unit.model.kernels import plain_only
from tests.unit.model.kernels.test_short_attention import attend_one_by_one, heads_of

OPTIMIZED = compile_c.OPTIONS
QUICKLY = tuple(option.replace("-O3", "-O0") for option in OPTIMIZED)
needs_compiler = pytest.mark.skipif(not library.use_operations(True), reason="needs a C compiler")
library.use_operations(False)
for_all_threads = pytest.mark.usefixtures("in_c")
BF16, FLOAT32 = torch.bfloat16, torch.float32
ROUNDING = {BF16: 1.0, FLOAT32: 2.5e-4}
"""The largest error in each type, divided by that in bf16."""
ROTATING = [name for name in CHOICES["model.positions"] if load("model.positions", name).rotates]
pytestmark = plain_only


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    library.use_operations(False)


@pytest.fixture(params=[BF16, FLOAT32], ids=["bf16", "fp32"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    found: torch.dtype = request.param
    return found


def packed(lengths: list[int]) -> Packed:
    return Packed.from_lengths(torch.randint(4, 30, (sum(lengths),)), torch.tensor(lengths))


def error(ours: Tensor, exact: Tensor) -> float:
    return float(((ours.double() - exact).norm() / exact.norm()).detach())


@needs_compiler
@for_all_threads
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("heads", "key_heads", "key_width", "value_width"), [(2, 2, 16, 16), (4, 2, 8, 40), (1, 1, 64, 112)]
)
@pytest.mark.parametrize("lengths", [[1, 15, 16, 0, 0], [17, 2], [3, 300]])
def test_attention_and_its_gradients_equal_those_of_torch(
    lengths: list[int], heads: int, key_heads: int, key_width: int, value_width: int, causal: bool, dtype: torch.dtype
) -> None:
    widths = [heads * key_width, key_heads * key_width, key_heads * value_width]
    random = torch.Generator().manual_seed(1)
    product = torch.randn(sum(lengths), sum(widths), generator=random).to(dtype)
    gradient = torch.randn(sum(lengths), heads * value_width, generator=random).to(dtype)

    def parts(product: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return heads_of(product, widths, heads, key_heads)

    ours, exact, sentences = product.clone().requires_grad_(), product.double().requires_grad_(), packed(lengths)
    attended = AttendInC(sentences, sentences, causal=causal)(*parts(ours))
    expected = attend_one_by_one(*parts(exact), lengths, lengths, causal).flatten(1)
    assert attended.dtype == dtype
    assert error(attended, expected) < 4e-3 * ROUNDING[dtype]
    (ours_gradient,) = torch.autograd.grad(attended, ours, gradient)
    (exact_gradient,) = torch.autograd.grad(expected, exact, gradient.double())
    for each, truth in zip(ours_gradient.split(widths, -1), exact_gradient.split(widths, -1), strict=True):
        assert error(each, truth) < 4e-3 * ROUNDING[dtype]


@needs_compiler
@for_all_threads
def test_cross_attention_equals_that_of_torch(dtype: torch.dtype) -> None:
    from_lengths, to_lengths, random = [5, 1, 20], [40, 33, 2], torch.Generator().manual_seed(1)
    tensors = [torch.randn(sum(each), 2, 16, generator=random) for each in (from_lengths, to_lengths, to_lengths)]
    ours, exact = ([each.to(dtype).to(kind).requires_grad_() for each in tensors] for kind in (dtype, torch.float64))
    attended = AttendInC(packed(from_lengths), packed(to_lengths), causal=False)(ours[0], ours[1], ours[2])
    expected = attend_one_by_one(exact[0], exact[1], exact[2], from_lengths, to_lengths, causal=False).flatten(1)
    assert error(attended, expected) < 4e-3 * ROUNDING[dtype]
    gradients = torch.autograd.grad(attended.sum(), ours)
    for each, truth in zip(gradients, torch.autograd.grad(expected.sum(), exact), strict=True):
        assert error(each, truth) < 1e-2 * ROUNDING[dtype]  # equal gradients cancel


@needs_compiler
@for_all_threads
def test_large_scores_give_finite_results(dtype: torch.dtype) -> None:
    heads, sentences = torch.full((3, 1, 16), 100.0, dtype=dtype, requires_grad=True), packed([3])
    attended = AttendInC(sentences, sentences, causal=True)(heads, heads, heads)
    torch.testing.assert_close(attended, heads.detach().flatten(1))
    attended.sum().backward()
    assert heads.grad is not None
    assert heads.grad.isfinite().all()


def rotate_as_complex(heads: Tensor, sinusoids: Tensor) -> Tensor:
    """Multiply pairs of coordinates (T, h, d), read as complex numbers, by the same of the sinusoids (T, d)."""
    sine, cosine = sinusoids.unflatten(-1, (-1, 2)).unbind(-1)
    pairs = torch.view_as_complex(heads.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.complex(cosine, sine)[:, None]).flatten(-2)


@needs_compiler
@for_all_threads
def test_rotation_and_its_gradient_equal_those_of_torch(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(1)
    product, gradient = (
        torch.randn(9, 96, generator=random).to(dtype),
        torch.randn(9, 2, 32, generator=random).to(dtype),
    )
    table = sinusoids(9, 32).to(dtype)
    ours, exact = product.clone().requires_grad_(), product.double().requires_grad_()
    heads, exact_heads = (each[:, 16:80].unflatten(1, (2, -1)) for each in (ours, exact))
    rotated, expected = rotate(heads, table), rotate_as_complex(exact_heads, table.double())
    assert error(rotated, expected) < 4e-3 * ROUNDING[dtype]
    (ours_gradient,) = torch.autograd.grad(rotated, ours, gradient)
    (exact_gradient,) = torch.autograd.grad(expected, exact, gradient.double())
    assert error(ours_gradient, exact_gradient) < 4e-3 * ROUNDING[dtype]


@needs_compiler
@for_all_threads
@pytest.mark.parametrize("width", [16, 48])
def test_dropout_residual_and_norm_equal_those_of_torch(
    width: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = torch.Generator().manual_seed(1)
    drawn = torch.randint(-(1 << 15), 1 << 15, (7, width), dtype=torch.int16, generator=random)
    monkeypatch.setattr(dropout, "_random_numbers", lambda _: drawn)
    drop, norm = Dropout(0.3), nn.LayerNorm(width)
    kept = (drawn >= round(0.3 * 65536) - 32768).double() / 0.7
    assert 0.5 < float((kept > 0).double().mean()) < 0.9
    with torch.no_grad():
        norm.weight.normal_(1, 0.2, generator=random)
        norm.bias.normal_(0, 0.2, generator=random)
    exact_norm = nn.LayerNorm(width).double()
    exact_norm.load_state_dict(norm.state_dict())
    tensors = [torch.randn(7, width, generator=random).to(dtype) for _ in range(3)]
    stream, branch = ours = [each.clone().requires_grad_() for each in tensors[:2]]
    exact_stream, exact_branch = exact = [each.double().requires_grad_() for each in tensors[:2]]
    for result, expected in (
        (drop(branch), exact_branch * kept),
        (drop.add(stream, branch), exact_stream + exact_branch * kept),
        (drop.add_norm(stream, branch, norm), exact_norm(exact_stream + exact_branch * kept)),
    ):
        assert result.dtype == dtype
        assert error(result, expected) < 4e-3 * ROUNDING[dtype]
        leaves, exact_leaves = [*ours, *norm.parameters()], [*exact, *exact_norm.parameters()]
        gradients = torch.autograd.grad(result, leaves, tensors[2], allow_unused=True)
        truths = torch.autograd.grad(expected, exact_leaves, tensors[2].double(), allow_unused=True)
        for each, truth in zip(gradients, truths, strict=True):
            assert (each is None) == (truth is None)
            assert each is None or error(each, truth) < 6e-3 * ROUNDING[dtype]


@needs_compiler
@for_all_threads
def test_sums_of_rows_and_the_gradient_of_a_relu_equal_those_of_torch(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(1)
    gradient, inner = (torch.randn(33, 48, generator=random).to(dtype) for _ in range(2))
    assert error(rows.sum_rows(gradient), gradient.double().sum(0)) < 1e-6
    row = torch.randn(48, generator=random)
    difference = rows.scaled_difference(gradient, row, torch.tensor(0.3))
    assert error(difference, (gradient.double() - row.double()) * 0.3) < 1e-6
    kept, sums = rectifier_gradient(gradient, inner.relu())
    assert kept.equal(gradient * (inner > 0))
    assert error(sums, kept.double().sum(0)) < 1e-6


@needs_compiler
@for_all_threads
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("words", [5, 40])
def test_numbers_that_are_not_finite_stay_so(words: int, bad: float, dtype: torch.dtype) -> None:
    for place in (0, words - 1):
        logits = torch.zeros(2, words, dtype=dtype)
        logits[1, place] = bad
        normaliser, _ = softmax_gradient_(logits, torch.tensor([1, 2]), 0.1)
        assert logits[0].isfinite().all()
        assert normaliser[0].isfinite()
        assert not logits[1].isfinite().any()
        assert not normaliser[1].isfinite()
    heads = torch.zeros(4, 1, 16, dtype=dtype)
    heads[3] = bad
    attended = AttendInC(packed([3, 1]), packed([3, 1]), causal=False)(heads, heads, heads)
    assert attended[:3].isfinite().all()
    assert not attended[3].isfinite().any()
    stream, branch = torch.zeros(2, 16, dtype=dtype), torch.zeros(2, 16, dtype=dtype)
    branch[1] = bad
    normed = Dropout(0.5).add_norm(stream, branch, nn.LayerNorm(16))
    assert normed[0].isfinite().all()
    assert not normed[1].isfinite().any()


def batch_of_pairs() -> MicroBatch:
    source, target = packed([7, 20, 3]), packed([9, 18, 5])
    return MicroBatch(source, target, labels=torch.randint(4, 30, (32,)), sentences=np.arange(3))


@needs_compiler
@pytest.mark.parametrize("settings", [{}, *({"norm_placement": "pre", "positions": name} for name in ROTATING)])
def test_a_step_in_c_is_as_near_to_float32_as_one_in_pytorch(settings: dict[str, str]) -> None:
    config = ModelConfig(layers=2, d_model=32, d_ff=64, heads=2, dropout=0.2, **settings)  # type: ignore[arg-type]
    torch.manual_seed(1)
    model = build_model(config, 30, 30)
    batch = batch_of_pairs()
    objective = Objective(model, 0.1)

    def step(precision: torch.dtype, *, in_c: bool) -> tuple[float, Tensor]:
        """Return the loss and all gradients, always with the same dropout."""
        assert library.use_operations(in_c) == in_c
        torch.manual_seed(2)
        with WorkingWeights(model, precision).active():
            loss = objective(batch).smoothed
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        return float(loss.detach()), torch.cat([each.flatten() for each in gradients])

    exact_loss, exact = step(torch.float32, in_c=False)
    plain_loss, plain = step(BF16, in_c=False)
    loss, ours = step(BF16, in_c=True)
    assert not ours.equal(plain)
    assert loss == pytest.approx(exact_loss, rel=2e-3)
    assert plain_loss == pytest.approx(exact_loss, rel=2e-3)
    assert error(ours, exact.double()) < 1.1 * error(plain, exact.double()) < 0.1


@needs_compiler
@pytest.mark.parametrize("positions", ["sinusoidal", *ROTATING])
def test_a_step_in_float32_in_c_has_the_gradients_of_pytorch(positions: str) -> None:
    config = ModelConfig(layers=2, d_model=32, d_ff=64, heads=2, dropout=0.2, positions=positions)
    torch.manual_seed(1)
    model, batch = build_model(config, 30, 30), batch_of_pairs()
    gradients = []
    for threads, in_c in ((1, False), (1, True), (4, True)):
        torch.set_num_threads(threads)
        assert library.use_operations(in_c) == in_c
        torch.manual_seed(2)
        loss = Objective(model, 0.1)(batch).smoothed
        gradients.append(torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(model.parameters()))]))
    plain, *ours = gradients
    for each in ours:
        assert not each.equal(plain)
        assert error(each, plain.double()) < 1e-5


@needs_compiler
@for_all_threads
def test_the_gradient_of_logits_equals_that_of_torch(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(1)
    for words in (5, 16, 40, 1000):
        logits, labels = torch.randn(9, words, generator=random).to(dtype), torch.arange(9) % words
        exact = torch.softmax(logits.double(), -1) - 0.9 * F.one_hot(labels, words)
        expected = torch.logsumexp(logits.double(), -1)
        normaliser, label_logit = softmax_gradient_(logits, labels, 0.1)
        assert error(logits, exact) < 4e-3 * ROUNDING[dtype]
        assert error(normaliser, expected) < 1e-6
        assert label_logit.dtype == torch.float32


def compile_into(cache: Path, patch: pytest.MonkeyPatch) -> Path:
    """Let the operations be compiled again, quickly, into a folder of this cache, which is returned."""
    patch.setattr(compile_c, "OPTIONS", QUICKLY)
    patch.setattr(library, "_library", library._library.__wrapped__)
    patch.setenv("XDG_CACHE_HOME", str(cache))
    return cache / "nmt"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of an empty cache for the operations, which are compiled quickly."""
    return compile_into(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a cache with the operations, from the compiler of the environment; CC may be empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", os.environ.get("CC", ""))
        folder = compile_into(tmp_path_factory.mktemp("cache"), patch)
        assert library.use_operations(True)
    return folder


@needs_compiler
def test_the_operations_are_compiled_once(fresh: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(filled, fresh)
    files = {file: file.stat().st_mtime_ns for file in fresh.iterdir()}
    assert [file.suffix for file in files] == [".so", ".so"]
    monkeypatch.setattr(compile_c, "_compile", lambda *_: pytest.fail("compiled again"))
    assert library.use_operations(True)
    assert {file: file.stat().st_mtime_ns for file in fresh.iterdir()} == files


@needs_compiler
def test_a_damaged_file_in_the_cache_is_replaced(fresh: Path) -> None:
    fresh.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_c, "_compile", lambda _, folder: write_garbage(folder / "operations.so"))
        assert not library.use_operations(True)
    assert [file.read_bytes() for file in fresh.glob("*.so")] == [b"no library"] * 2
    assert library.use_operations(True)


def write_garbage(file: Path) -> Path:
    file.write_bytes(b"no library")
    return file


@needs_compiler
def test_two_processes_can_compile_simultaneously(tmp_path: Path) -> None:
    started = [Running(compile_again, QUICKLY, XDG_CACHE_HOME=str(tmp_path)) for _ in range(2)]
    assert [process.wait().returncode for process in started] == [0, 0]
    assert sorted(file.suffix for file in (tmp_path / "nmt").iterdir()) == [".so", ".so"]


@pytest.mark.parametrize("compiler", ["a-compiler-that-does-not-exist", "false", "'"])
def test_without_a_compiler_pytorch_computes_the_same(
    compiler: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert not library.use_operations(True)
    logits = torch.randn(7, 40, generator=torch.Generator().manual_seed(1)).to(BF16)
    labels = torch.arange(7)
    exact = torch.softmax(logits.double(), -1) - 0.9 * F.one_hot(labels, 40)
    softmax_gradient_(logits, labels, 0.1)
    torch.testing.assert_close(logits.double(), exact, rtol=2**-8, atol=1e-7)
    sentences = packed([2, 3])
    assert type(plan_attention(AttentionSpec(sentences, sentences, False, 16, BF16))) is PaddedAttend


def test_a_compiler_that_fails_is_the_same_as_none(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -DLANES=+")
    assert not library.use_operations(True)
    assert not list(fresh.glob("*"))


@needs_compiler
@for_all_threads
def test_training_uses_c_with_any_number_of_threads_and_translation_uses_pytorch(dtype: torch.dtype) -> None:
    sentences = packed([2, 3])
    spec = AttentionSpec(sentences, sentences, causal=False, head_width=16, precision=dtype)
    assert type(plan_attention(spec)) is AttendInC
    with torch.no_grad():
        assert type(plan_attention(spec)) is PaddedAttend
