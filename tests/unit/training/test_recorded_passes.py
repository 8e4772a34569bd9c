"""Passes recorded as CUDA graphs, with graphs that run their pass again: the same training, bit for bit."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.compose import compose
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.training import new_trainer, recorded_passes
from nmt.training.additions import Additions, additions_to
from nmt.training.graph_shapes import MAX_SHAPES, RECORDED_AT
from nmt.training.hook import Report
from nmt.training.loss import Losses
from nmt.training.recorded_passes import RecordedPasses, Recording
from nmt.training.trainer import Trainer

WORDS = 50
MODEL = ModelConfig(layers=1, d_model=32, d_ff=64, heads=2)
CPU, GPU = (Machine(torch.device(name), torch.float32) for name in ("cpu", "cuda"))
SEEDS = (0, 1, 0, 2, 1, 0, 3, 1, 0, 2, 2)
"""The sizes of steps; 0 and 1 are the first that are met three times."""


class Replayed:
    """Stands for a CUDA graph: a replay computes the pass again from what is in its places."""

    def __init__(self, replay: Callable[[], None]) -> None:
        self.replay = replay


def capture(passes: RecordedPasses, batch: MicroBatch, places: list[Tensor], change: float = 1.0) -> Recording:
    """Take the place of the method that needs a GPU; `change` multiplies the gradient of a wrong recording."""
    losses = Losses(torch.zeros(()), torch.zeros(()))

    def replay() -> None:
        torch._foreach_copy_(list(losses), list(passes._pass(batch)))
        torch._foreach_add_(places, passes._new_gradients(), alpha=change)
        passes._put(places)

    passes._put([None] * len(places))
    return Recording(cast(Any, Replayed(replay)), batch, losses)


def fails(error: Exception) -> Callable[..., Recording]:
    def raise_error(*_: object) -> Recording:
        raise error

    return raise_error


@pytest.fixture(autouse=True)
def fake_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordedPasses, "_capture", capture)
    monkeypatch.setattr(recorded_passes, "_has_room", lambda _: True)


def step(seed: int, micro_batches: int = 1) -> GlobalBatch:
    batches = [_micro_batch(seed, number) for number in range(micro_batches)]
    tokens = sum(len(each.labels) for each in batches)
    return GlobalBatch(batches, tokens, 2 * tokens, DataPosition())


def _micro_batch(seed: int, number: int) -> MicroBatch:
    lengths, words = np.random.default_rng(seed), np.random.default_rng([seed, number])
    source, target = (
        Packed.from_sentences([words.integers(4, WORDS, lengths.integers(2, 9)).tolist() for _ in range(3 + seed)])
        for _ in range(2)
    )
    return MicroBatch(source, target, target.tokens, np.arange(source.sentences))


def trained(passes: RecordedPasses | None, micro_batches: int = 1) -> tuple[Trainer, list[Tensor], float]:
    """Return a trainer after some steps, its weights, and the mean loss."""
    torch.manual_seed(1)
    model = build_model(MODEL, WORDS, WORDS)
    trainer = Trainer(model, TrainingConfig(warmup_steps=10), CPU, seed=1, parallel=1, passes=passes)
    for seed in SEEDS:
        trainer.update(step(seed, micro_batches))
    return trainer, [each.detach().clone() for each in model.parameters()], trainer.take_statistics().loss


def assert_same_training(passes: RecordedPasses, micro_batches: int = 1) -> None:
    _, weights, loss = trained(None, micro_batches)
    _, ours, our_loss = trained(passes, micro_batches)
    assert our_loss == loss
    assert all(map(torch.equal, ours, weights))


@pytest.mark.parametrize("micro_batches", [1, 2, 3])
@pytest.mark.parametrize("limit", [1, MAX_SHAPES])
def test_training_with_recorded_passes_is_the_same(micro_batches: int, limit: int) -> None:
    """Several micro-batches of a size are recorded in the middle of a step, and only some sizes are."""
    passes = RecordedPasses(limit)
    assert_same_training(passes, micro_batches)
    assert cast(float, passes.report(1).figures["graph_share"]) > 0.1


def test_sizes_that_are_met_often_are_recorded_up_to_the_limit() -> None:
    passes = RecordedPasses(limit=2)
    trainer, _, _ = trained(passes)
    met = [SEEDS[: place + 1].count(seed) for place, seed in enumerate(SEEDS)]
    covered = sum(count >= RECORDED_AT and seed in (0, 1) for count, seed in zip(met, SEEDS, strict=True))
    report = passes.report(len(SEEDS))
    assert report.figures == {"graph_shapes": 2, "graph_share": round(covered / len(SEEDS), 4)}
    assert report.lines == ["2 sizes of micro-batches are recorded as CUDA graphs; others run without"]
    trainer.update(step(0))
    assert passes.report(12) == Report({"graph_shapes": 2, "graph_share": 1.0}, lines=[])


@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize(
    ("recording", "reason"),
    [
        (fails(torch.OutOfMemoryError("CUDA out of memory\nand advice")), "CUDA out of memory"),
        (fails(AssertionError()), "AssertionError"),
        (lambda passes, batch, places: capture(passes, batch, places, change=1.1), "a replay computes "),
    ],
    ids=["memory", "assertion", "wrong gradient"],
)
def test_training_goes_on_without_graphs_that_fail_or_are_wrong(
    micro_batches: int,
    recording: Callable[..., Recording],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(RecordedPasses, "_capture", recording)
    passes = RecordedPasses()
    assert_same_training(passes, micro_batches)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: training goes on without CUDA graphs: {reason}")
    assert passes.report(1) == Report()


def test_second_recording_that_fails_ends_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recordings = iter([capture, fails(RuntimeError("capture failed"))])

    def capture_once(*arguments: Any) -> Recording:
        return next(recordings)(*arguments)

    monkeypatch.setattr(RecordedPasses, "_capture", capture_once)
    assert_same_training(RecordedPasses(), micro_batches=2)
    assert capsys.readouterr().err == "warning: training goes on without CUDA graphs: capture failed\n"


def test_graphs_that_would_need_too_much_memory_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recorded_passes, "_has_room", lambda _: False)
    assert_same_training(RecordedPasses())
    assert "they would need more memory than the GPU has" in capsys.readouterr().err


def test_validation_records_nothing() -> None:
    passes = RecordedPasses()
    trainer = Trainer(build_model(MODEL, WORDS, WORDS), TrainingConfig(), CPU, seed=1, passes=passes)
    (batch,) = step(0).micro_batches
    with trainer.evaluating() as weights, torch.inference_mode():
        weights.model.eval()(batch.source, batch.target)
    assert passes.report(1) == Report()


OBSTACLES = {
    "they need a GPU of NVIDIA": (CPU, [], 1),
    "several processes average their gradients during the backward pass": (GPU, [], 2),
    "in fp16 the factor of the loss changes": (GPU._replace(precision=torch.float16), [], 1),
    "the loss has more than one term": (GPU, ["training.z_loss=1e-4"], 1),
    "layers are skipped at random": (GPU, ["model.layer_drop=0.1"], 1),
}


@pytest.mark.parametrize("reason", OBSTACLES)
@pytest.mark.parametrize("wanted", ["null", "true"])
def test_runs_that_cannot_be_recorded_say_so_only_if_that_was_asked_for(
    reason: str, wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine, settings, processes = OBSTACLES[reason]
    monkeypatch.setattr(distributed, "world_size", lambda: processes)
    config = compose([*settings, f"runtime.cuda_graphs={wanted}"])
    assert new_trainer._recorded_passes(config, machine, additions_to(config), divided=False) is None
    said = f"warning: training goes on without CUDA graphs: {reason}\n"
    assert capsys.readouterr().err == (said if wanted == "true" else "")


@pytest.mark.parametrize(
    ("settings", "are_recorded"),
    [
        ([], True),
        (["runtime.cuda_graphs=false"], False),
        (["runtime.compile=true"], False),
        (["runtime.compile=true", "runtime.cuda_graphs=true"], True),
    ],
)
def test_passes_are_recorded_on_a_gpu_unless_the_settings_say_otherwise(
    settings: list[str], are_recorded: bool
) -> None:
    passes = new_trainer._recorded_passes(compose(settings), GPU, Additions(), divided=False)
    assert (passes is not None) is are_recorded
