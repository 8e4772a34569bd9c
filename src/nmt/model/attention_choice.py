"""The setting `runtime.attention`, and whether flash attention suits a model."""

import functools

import torch

from nmt.config.schema import ModelConfig
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
    """Return the plan that `runtime.attention` chooses; raise UserError if it cannot work here."""
    reason = ""
    if kind in ("flash", "short"):
        on_gpu = device == "cuda" and precision == torch.bfloat16
        reason = flash_obstacle(config) if on_gpu else "needs a GPU that computes in bf16"
    if kind == "short" and not reason:
        if max(config.key_size, config.value_size) > MAX_SHORT_HEAD_WIDTH:
            reason = f"has heads of at most {MAX_SHORT_HEAD_WIDTH} (model.d_k, model.d_v)"
        elif not has_triton():
            reason = "needs the package triton"
    if reason:
        raise UserError(f"runtime.attention={kind} {reason}: use runtime.attention=auto")
    return PLAN_PADDED if kind == "padded" else functools.partial(plan_attention, kind=kind)
