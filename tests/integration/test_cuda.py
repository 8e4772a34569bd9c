"""Tests that need a GPU; `make test-all` runs them if there is one."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from nmt.config.schema import ModelConfig
from nmt.model import attention
from nmt.model.attention import FlashAttend, PaddedAttend, plan_attention
from nmt.model.build import build_model
from nmt.model.packed import Packed
from nmt.model.working_weights import WorkingWeights
from tests.integration.toy import run

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SHAPES = {
    "paper": ModelConfig(layers=2, d_model=128, d_ff=256, heads=2, dropout=0.0),
    "narrow keys": ModelConfig(layers=2, d_model=128, d_ff=256, heads=2, d_k=16, dropout=0.0),
    "sixteen wide": ModelConfig(layers=2, d_model=128, d_ff=256, heads=8, dropout=0.0),
    "shared keys": ModelConfig(layers=2, d_model=128, d_ff=256, heads=4, kv_heads=2, dropout=0.0),
}


def streams() -> tuple[Packed, Packed]:
    random = torch.Generator().manual_seed(1)
    sides = []
    for lengths in ([5, 31, 1, 17], [9, 1, 44, 8]):
        tokens = torch.randint(4, 90, (sum(lengths),), generator=random)
        sides.append(Packed.from_lengths(tokens, torch.tensor(lengths)).to(torch.device("cuda")))
    return sides[0], sides[1]


def test_bf16_on_a_gpu_uses_flash_attention() -> None:
    source, target = streams()
    plan = partial(plan_attention, target, source, causal=False)
    assert isinstance(plan(head_width=64, precision=torch.bfloat16), FlashAttend)
    assert isinstance(plan(head_width=512, precision=torch.bfloat16), PaddedAttend)
    assert isinstance(plan(head_width=64, precision=torch.float32), PaddedAttend)


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_flash_attention_equals_padded_attention(config: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the output and the gradients, up to the precision of bf16."""
    source, target = streams()
    model = build_model(config, 100, 100).to(torch.device("cuda"))
    results = []
    for width in (attention.MAX_FLASH_HEAD_WIDTH, 0):
        monkeypatch.setattr(attention, "MAX_FLASH_HEAD_WIDTH", width)
        for parameter in model.parameters():
            parameter.grad = None
        with WorkingWeights(model, torch.bfloat16).active():
            output = model(source, target)
        output.float().square().sum().backward()
        results.append([output.float(), *(parameter.grad for parameter in model.parameters())])
    for flash, padded in zip(*results, strict=True):
        assert flash is not None
        assert padded is not None
        assert torch.nn.functional.cosine_similarity(flash.flatten(), padded.flatten(), dim=0) > 0.999


def test_gpu_computes_the_same_as_the_cpu() -> None:
    source, target = streams()
    model = build_model(SHAPES["paper"], 100, 100)
    here = model(*(stream.to(torch.device("cpu")) for stream in (source, target)))
    there = model.to(torch.device("cuda"))(source, target)
    torch.testing.assert_close(there.cpu(), here, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("compiled", [False, True])
def test_training_on_a_gpu_learns_and_resumes(settings: list[str], tmp_path: Path, compiled: bool) -> None:
    command = [
        "train", *settings, f"paths.outputs={tmp_path}", "runtime.device=cuda", f"runtime.compile={compiled}",
    ]  # fmt: skip
    first, second = (run([*command, f"training.steps={steps}"]) for steps in (20, 40))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "going on from step 20" in second.stdout
    lines = [json.loads(line) for line in (tmp_path / "toy" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["event"] == "train"]
    assert len(losses) == 40
    assert losses[-1] < losses[0] - 0.5
