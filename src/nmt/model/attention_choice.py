"""The setting `runtime.attention`, and whether flash attention suits a model."""

import functools

import torch

from nmt.compute.machine import is_amd
from nmt.config.model import ModelConfig
from nmt.errors import UserError
from nmt.model.attention_plan import PLAN_PADDED, Plan, plan_attention
from nmt.model.build import architecture_of
from nmt.model.kernels.backend import has_triton
from nmt.model.kernels.short_attention import MAX_HEAD_WIDTH as MAX_SHORT_HEAD_WIDTH
from nmt.model.positions.base import positions_of


def flash_obstacle(config: ModelConfig) -> str:
    """Return why flash attention does not suit a model, as the predicate of a sentence; empty if it does."""
    if positions_of(config).biases_scores:
        return f"cannot add the bias of model.positions={config.positions} to the scores"
    if mask := architecture_of(config).special_mask(config):
        return f"has no {mask}"
    if config.attention_dropout:
        return f"cannot drop attention weights (model.attention_dropout={config.attention_dropout})"
    return ""


def plan_for(kind: str, device: str, precision: torch.dtype, config: ModelConfig) -> Plan:
    """Return the plan that `runtime.attention` chooses for training; raise UserError if it cannot work here.

    "auto" is short attention if that is fastest. Translation, which encodes a text only once, takes flash attention.
    """
    if kind == "padded":
        return PLAN_PADDED
    if kind == "auto":
        kind = "auto" if _obstacle("short", device, precision, config) else "short"
    elif reason := _obstacle(kind, device, precision, config):
        raise UserError(f"runtime.attention={kind} {reason}: use runtime.attention=auto")
    return functools.partial(plan_attention, kind=kind)


def _obstacle(kind: str, device: str, precision: torch.dtype, config: ModelConfig) -> str:
    """Return why flash or short attention cannot work here, as the predicate of a sentence; empty if it can."""
    if device != "cuda" or is_amd() or precision != torch.bfloat16:
        return "needs a GPU of NVIDIA that computes in bf16"
    if reason := flash_obstacle(config):
        return reason
    if kind == "short" and max(config.key_size, config.value_size) > MAX_SHORT_HEAD_WIDTH:
        return f"has heads of at most {MAX_SHORT_HEAD_WIDTH} (model.d_k, model.d_v)"
    if kind == "short" and not has_triton():
        return "needs the package triton, and runtime.kernels=true"
    return ""
