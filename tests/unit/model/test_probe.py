"""Operations of a device that fail their trial are replaced by plain ones, whatever way they fail in."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from nmt.compute import replaced
from nmt.compute.machine import Machine
from nmt.compute.replaced import Fast
from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.model import operation_errors, probe
from nmt.model.attention import FlashAttend, PaddedAttend, ShortAttend
from nmt.model.attention_plan import AttentionSpec, plan_attention
from nmt.model.fused_attention import FusedPaddedAttend
from nmt.model.kernels import backend
from nmt.model.packed import Packed
from nmt.model.probe import Trial, Wanted, failures, reason_of_failure, trials
from tests.unit.model.flash_kernels import register_flash_kernels

SMALL = ModelConfig(layers=1, d_model=32, d_ff=64, heads=2)
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
NEEDS_A_GPU = (Fast.PINNED, Fast.GRAPHS)


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Try everything, on the CPU."""
    register_flash_kernels()
    monkeypatch.setattr(probe, "has_triton", lambda: True)
    monkeypatch.setattr(probe, "may_have_flash_attention", lambda _, precision: precision == torch.bfloat16)
    replaced.forget()
    yield
    replaced.forget()


def trials_on_cpu(precision: torch.dtype = torch.bfloat16, model: ModelConfig = SMALL) -> dict[Fast, Trial]:
    wanted = Wanted(vocabulary=101, attention="short" if precision == torch.bfloat16 else "auto", graphs=True)
    return {each.operation: each for each in trials(model, Machine(CPU, precision), wanted)}


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_operations_that_compute_correctly_pass(precision: torch.dtype) -> None:
    found = {key: reason_of_failure(each) for key, each in trials_on_cpu(precision).items() if key not in NEEDS_A_GPU}
    assert found == dict.fromkeys(found, "")
    assert {Fast.TRITON, Fast.RESIDUAL, Fast.SOFTMAX, Fast.OPTIMIZER, Fast.TF32} <= found.keys()
    assert (Fast.FLASH in found) is (Fast.SHORT in found) is (precision == torch.bfloat16)
    assert (Fast.PADDED in found) is (precision == torch.float16)
    assert (Fast.RECTIFIER in found) is (precision != torch.float32)


def test_training_tries_short_attention_unless_heads_are_too_wide() -> None:
    wide = replace(SMALL, d_model=256, heads=2)
    tried = {
        model.key_size: {each.operation for each in trials(model, Machine(CPU, torch.bfloat16), Wanted(vocabulary=101))}
        for model in (SMALL, wide)
    }
    assert [Fast.SHORT in found for found in tried.values()] == [True, False]


def test_a_model_that_only_translates_needs_neither_optimizer_nor_loss() -> None:
    found = {each.operation for each in trials(SMALL, Machine(CPU, torch.bfloat16), Wanted())}
    assert found == {Fast.TRITON, Fast.RESIDUAL, Fast.FLASH, Fast.TF32, Fast.PINNED}


def test_a_model_whose_scores_have_a_bias_needs_no_flash_attention() -> None:
    assert Fast.FLASH not in trials_on_cpu(model=ModelConfig(**{**vars_of(SMALL), "positions": "alibi"}))


def vars_of(model: ModelConfig) -> dict[str, Any]:
    return {"layers": model.layers, "d_model": model.d_model, "d_ff": model.d_ff, "heads": model.heads}


def first_broken(function: Callable[..., Any], change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """Return the function with its first result changed."""

    def broken(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        return change(result) if isinstance(result, Tensor) else (change(result[0]), *result[1:])

    return broken


def raising(*_: object, **__: object) -> Any:
    raise RuntimeError("no kernel image is available\nfor this device")


FAULTS: dict[str, tuple[Callable[[Callable[..., Any]], Callable[..., Any]], str]] = {
    "raises": (lambda _: raising, "RuntimeError: no kernel image is available"),
    "not a number": (lambda f: first_broken(f, lambda found: found * torch.nan), "its relative error is nan"),
    "infinite": (lambda f: first_broken(f, lambda found: found + torch.inf), "its relative error is"),
    "wrong numbers": (lambda f: first_broken(f, lambda found: found * 1.05), "its relative error is 0.0"),
}
PARTS = {
    Fast.TRITON: "dropout_add",
    Fast.RESIDUAL: "dropout_add_norm",
    Fast.RECTIFIER: "rectifier_gradient",
    Fast.SOFTMAX: "softmax_gradient_",
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", PARTS)
def test_a_broken_kernel_is_noticed(operation: Fast, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrap, reason = FAULTS[fault]
    broken = wrap(getattr(operation_errors, PARTS[operation]))
    monkeypatch.setattr(operation_errors, PARTS[operation], broken)
    assert reason_of_failure(trials_on_cpu()[operation]).startswith(reason)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("attend", "operation", "precision"),
    [
        (FlashAttend, Fast.FLASH, torch.bfloat16),
        (ShortAttend, Fast.SHORT, torch.bfloat16),
        (FusedPaddedAttend, Fast.PADDED, torch.float16),
    ],
)
def test_broken_attention_is_noticed(
    attend: type, operation: Fast, precision: torch.dtype, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrap, reason = FAULTS[fault]
    monkeypatch.setattr(attend, "__call__", wrap(attend.__call__))
    assert reason_of_failure(trials_on_cpu(precision)[operation]).startswith(reason)


def test_flash_attention_that_ignores_the_window_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.nn.attention import varlen

    whole = varlen.varlen_attn
    monkeypatch.setattr(
        varlen, "varlen_attn", lambda *args, **options: whole(*args, **{**options, "window_size": (-1, -1)})
    )
    assert reason_of_failure(trials_on_cpu()[Fast.FLASH]).startswith("its relative error is")


def test_attention_with_a_wrong_gradient_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FlashAttend.__call__

    def without_gradient_of_keys(self: FlashAttend, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return right(self, queries, keys + 0 * keys.detach() + (keys.detach() - keys) * 0.5, values)

    monkeypatch.setattr(FlashAttend, "__call__", without_gradient_of_keys)
    assert reason_of_failure(trials_on_cpu()[Fast.FLASH]).startswith("its relative error is 0.")


def test_an_optimizer_that_does_not_skip_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.optim.AdamW.step

    def never_skipping(self: torch.optim.AdamW) -> None:
        if hasattr(self, "found_inf"):
            del self.found_inf
        right(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", never_skipping)
    assert reason_of_failure(trials_on_cpu()[Fast.OPTIMIZER]).startswith("its relative error is")


def test_products_less_precise_than_tf32_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Tensor.__matmul__

    def rounded(left: Tensor, other: Tensor) -> Tensor:
        return right(left, other) if left.dtype == torch.float64 else right(left.bfloat16(), other.bfloat16()).float()

    monkeypatch.setattr(Tensor, "__matmul__", rounded)
    assert reason_of_failure(trials_on_cpu()[Fast.TF32]).startswith("its relative error is 0.00")


def test_pinned_copies_and_graphs_fail_without_a_gpu() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    found = trials_on_cpu()
    assert all(reason_of_failure(found[each]) for each in NEEDS_A_GPU)


def with_trials(monkeypatch: pytest.MonkeyPatch, *errors: tuple[Fast, Callable[[], float]]) -> None:
    monkeypatch.setattr(probe, "trials", lambda *_: [Trial(*each, 0.1) for each in errors])
    monkeypatch.setattr(probe, "_check_alive", lambda *_: None)


def test_each_operation_is_tried_and_a_kernel_only_if_any_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    never = Mock(side_effect=AssertionError("tried"))
    with_trials(monkeypatch, (Fast.TRITON, raising), (Fast.SOFTMAX, never), (Fast.TF32, lambda: 0.0))
    failed = failures(SMALL, Machine(GPU, torch.bfloat16), Wanted())
    assert failed == {Fast.TRITON: "RuntimeError: no kernel image is available"}
    assert replaced.replaced() == {"Triton's kernels": "RuntimeError: no kernel image is available"}
    assert replaced.is_proven(Fast.TF32)
    assert failures(SMALL, Machine(GPU, torch.bfloat16), Wanted()) == {}  # it is not tried, and not reported, again


def test_products_without_tf32_take_the_place_of_wrong_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with_trials(monkeypatch, (Fast.TF32, lambda: 0.5))
    chosen = Mock()
    monkeypatch.setattr(torch, "set_float32_matmul_precision", chosen)
    failures(SMALL, Machine(GPU, torch.bfloat16), Wanted())
    chosen.assert_called_once_with("highest")


def test_nothing_is_tried_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "trials", Mock(side_effect=AssertionError("tried")))
    assert failures(SMALL, Machine(CPU, torch.bfloat16), Wanted(100)) == {}


def test_a_gpu_that_does_nothing_any_more_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "trials", lambda *_: [Trial(Fast.FLASH, raising, 0.1)])
    monkeypatch.setattr(torch, "ones", raising)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla X")
    with pytest.raises(UserError, match=r"^flash attention fails on Tesla X .*set runtime\.attention=padded$"):
        failures(SMALL, Machine(GPU, torch.bfloat16), Wanted())


def test_a_line_says_what_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    replaced.replace_all({Fast.FLASH: "RuntimeError: no window"}, say=True)
    said = capsys.readouterr().err
    assert said.splitlines() == [
        "warning: flash attention failed a trial on this device, so a plain version replaces it: "
        "RuntimeError: no window"
    ]
    replaced.replace_all({Fast.SHORT: "too large"}, say=False)
    assert capsys.readouterr().err == ""
    assert not replaced.works(Fast.SHORT)


def planned(kind: str = "auto", precision: torch.dtype = torch.bfloat16) -> type:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        numbers = torch.empty(4, dtype=torch.int64, device="cuda")
        stream = Packed(numbers, numbers, torch.empty(3, dtype=torch.int32, device="cuda"), 2)
        return type(plan_attention(AttentionSpec(stream, stream, True, 64, precision), kind))


@pytest.mark.parametrize("failed", [Fast.TRITON, Fast.SHORT])
def test_flash_attention_takes_the_place_of_short_attention(failed: Fast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_has_bf16", lambda _: True)
    assert planned("short") is ShortAttend
    replaced.record(failed, "wrong")
    assert planned("short") is FlashAttend


def test_plans_avoid_attention_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_has_bf16", lambda _: True)
    assert planned() is FlashAttend
    replaced.record(Fast.SHORT, "wrong")
    replaced.record(Fast.FLASH, "wrong")
    assert planned("short") is planned("flash") is planned() is PaddedAttend
    assert planned(precision=torch.float16) is FusedPaddedAttend
    replaced.record(Fast.PADDED, "wrong")
    assert planned(precision=torch.float16) is PaddedAttend


def test_amds_gpus_have_flash_attention_once_it_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "is_amd", lambda: True)
    monkeypatch.setattr(backend, "_has_bf16", lambda _: True)
    assert not backend.has_flash_attention(GPU, torch.bfloat16)
    replaced.record(Fast.FLASH, "")
    assert backend.has_flash_attention(GPU, torch.bfloat16)


@pytest.mark.parametrize("failed", [Fast.TRITON, Fast.RESIDUAL])
def test_residual_connections_are_in_parts_without_their_kernel(failed: Fast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_has_bf16", lambda _: True)
    monkeypatch.setattr(backend, "has_triton", lambda: True)
    assert backend.has_fused_residual(GPU)
    replaced.record(failed, "wrong")
    assert not backend.has_fused_residual(GPU)


@pytest.mark.parametrize("fault", [pytest.param(None, marks=pytest.mark.slow), "raises", "wrong numbers"])
def test_amds_gpus_compile_only_if_compiled_attention_passes(
    fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "is_amd", lambda: True)
    wanted = Wanted(vocabulary=101, compiled=True)
    found = {each.operation: each for each in trials(SMALL, Machine(CPU, torch.float32), wanted)}
    compiled = torch.compile

    def broken(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
        return FAULTS[fault][0](function) if fault else compiled(function, backend="eager")

    monkeypatch.setattr(torch, "compile", broken)
    assert reason_of_failure(found[Fast.COMPILED]).startswith(FAULTS[fault][1] if fault else "")
    assert bool(reason_of_failure(found[Fast.COMPILED])) is bool(fault)


def test_other_gpus_compile_without_a_trial() -> None:
    assert Fast.COMPILED not in {
        each.operation for each in trials(SMALL, Machine(CPU, torch.float32), Wanted(compiled=True))
    }


@pytest.mark.parametrize(
    ("amd", "reason", "expected"), [(False, None, 1), (True, None, 0), (True, "no", 0), (True, "", 1)]
)
def test_a_model_is_compiled_where_that_is_proven_or_needs_no_proof(
    amd: bool, reason: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmt.config.schema import Config, RuntimeConfig
    from nmt.training import compiled, new_trainer

    compiling = Mock()
    monkeypatch.setattr(compiled, "compile_model", compiling)
    monkeypatch.setattr(new_trainer, "is_amd", lambda: amd)
    if reason is not None:
        replaced.record(Fast.COMPILED, reason)
    config = Config(model=SMALL, runtime=RuntimeConfig(device="cpu", compile=True))
    new_trainer.new_trainer(config, Machine(CPU, torch.float32), 101, 101)
    assert compiling.call_count == expected
