"""Compare the speed of training with that of Hugging Face's Marian model, on the same batches and device.

    .venv/bin/python scripts/dev/gpu_peer

Both train the same shape in bf16 on random words in sentences as long as those of WMT14, with label smoothing, dropout
and a fused AdamW; the peer on padded batches, with PyTorch's fused attention. Needs the package transformers.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from nmt.compute.machine import Machine, device_name, prepare_machine
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config, RuntimeConfig
from nmt.data.loader import GlobalBatch, MicroBatch
from nmt.data.store import PairStore
from nmt.data.synthetic import MAX_LENGTH, synthetic_pairs
from nmt.features.own_text.speed import measured_batches, wait
from nmt.model.packed import Packed
from nmt.text.special import PAD
from nmt.training.graph_shapes import RECORDED_AT
from nmt.training.memory_check import tokens_that_fit
from nmt.training.new_trainer import new_trainer
from nmt.training.trainer import Trainer

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, run_tool, tool_parser

SHAPES = {"base": ModelConfig(), "big": ModelConfig(d_model=1024, d_ff=4096, heads=16, dropout=0.3)}
WORDS = 37_000
BATCHES = 4
"""Different batches, which are trained on in turn."""


def main() -> int:
    """Print the milliseconds per step of both and their ratio; return the exit code."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--model", choices=list(SHAPES), default="base")
    parser.add_argument("--tokens", type=at_least(1), default=25_000, help="source and target tokens of a batch")
    parser.add_argument("--rounds", type=at_least(1), default=5, help="rounds in which both train on each batch")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    config = Config(
        model=SHAPES[options.model],
        training=TrainingConfig(batch_tokens=options.tokens),
        runtime=RuntimeConfig(device=options.device),
    )
    machine = prepare_machine(config.runtime)
    text = synthetic_pairs(WORDS, WORDS, pairs=50_000)
    trainer = fitting_trainer(config, machine, text)
    batches = list(islice(measured_batches(trainer, text), BATCHES))
    ours, peer = ours_trained(trainer, batches), peer_trained(config.model, machine, batches)
    tokens, times = sum(batch.tokens for batch in batches), list[tuple[float, float]]()
    for _ in range(options.rounds):
        times.append((seconds(ours, machine), seconds(peer, machine)))
        print("ours {:.2f} ms per step, peer {:.2f}".format(*(1000 * each / BATCHES for each in times[-1])), flush=True)
    ratios = [theirs / own for own, theirs in times]
    own, theirs = (tokens / statistics.median(each) for each in zip(*times, strict=True))
    print(f"{device_name(machine.device)}, {options.model} in {machine.precision_name}:", end=" ")
    print(f"ours {statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f});", end=" ")
    print(f"ours {own:,.0f} tokens per second, peer {theirs:,.0f}")
    return 0


def seconds(train: Callable[[], None], machine: Machine) -> float:
    """Return the time to train on all batches."""
    wait(machine.device)
    started = time.perf_counter()
    train()
    wait(machine.device)
    return time.perf_counter() - started


def fitting_trainer(config: Config, machine: Machine, text: PairStore) -> Trainer:
    """Return a trainer whose micro-batches fit in memory, as those of a run do."""
    trainer = new_trainer(config, machine, WORDS, WORDS)
    tokens = tokens_that_fit(trainer, text, MAX_LENGTH + 1)
    trainer.config = replace(trainer.config, device_tokens=tokens)
    return trainer


def ours_trained(trainer: Trainer, batches: Sequence[GlobalBatch]) -> Callable[[], None]:
    """Return what trains our model on all batches, warmed up."""
    pinned = trainer.machine.device.type == "cuda"
    ready = [batch.pinned() if pinned else batch for batch in batches]

    def train() -> None:
        for batch in ready:
            trainer.update(batch)

    for _ in range(RECORDED_AT + 1):  # a GPU records passes that it meets often
        train()
    return train


def peer_trained(shape: ModelConfig, machine: Machine, batches: Sequence[GlobalBatch]) -> Callable[[], None]:
    """Return what trains the peer on all batches, warmed up."""
    model = peer_model(shape).to(machine.device).train()
    on_gpu = machine.device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=on_gpu)
    padded = [_padded(each) for batch in batches for each in batch.micro_batches]
    ready = [tuple(each.pin_memory() if on_gpu else each for each in sides) for sides in padded]

    def train() -> None:
        for sides in ready:
            source, target, labels = (each.to(machine.device, non_blocking=True) for each in sides)
            with torch.autocast(machine.device.type, machine.precision):
                mask = (source != PAD).long()
                logits = model(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits
                loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=0.1)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    for _ in range(2):
        train()
    return train


def peer_model(shape: ModelConfig) -> Any:
    """Return Marian's model in the same shape, with one matrix for embeddings and projection."""
    from transformers import MarianConfig, MarianMTModel  # noqa: PLC0415 - only this needs it

    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", shape.layers), ("ffn_dim", shape.d_ff), ("attention_heads", shape.heads))
    }
    config = MarianConfig(
        vocab_size=WORDS,
        d_model=shape.d_model,
        dropout=shape.dropout,
        activation_function="relu",
        max_position_embeddings=1024,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        share_encoder_decoder_embeddings=True,
        attn_implementation="sdpa",
        **sizes,
    )
    return MarianMTModel(config)


def _padded(batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Return source, decoder input and labels as matrices (B, longest)."""
    labels = replace(batch.target, tokens=batch.labels)
    source, target, expected = (_rows(each) for each in (batch.source, batch.target, labels))
    real = (source != PAD).any(1)  # fillers of our own batches are no text
    return source[real], target[real], expected[real]


def _rows(stream: Packed) -> Tensor:
    sentences = stream.tokens[: int(stream.offsets[-1])].split(stream.lengths.tolist())
    return pad_sequence(list(sentences), batch_first=True, padding_value=PAD)


if __name__ == "__main__":
    run_tool(main, __file__)
