"""Train Hugging Face's Marian in a plain loop over nmt's batches, padded, and translate with it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from protocol import Job, Measurement, Result, serve
from torch import Tensor
from torch.nn import functional as F

from nmt.config.training import TrainingConfig
from nmt.data.batches import Batching, IntArray, plan_epoch
from nmt.data.store import PairStore
from nmt.text.special import BOS, EOS, PAD
from nmt.training.schedule import learning_rate, reachable_step

MAX_POSITIONS = 1536
MAX_EXTRA_PIECES = 50
SENTENCES = 64
"""Sentences per batch of the translation."""
IGNORE = -100
"""Label of padding, which torch's losses ignore."""


def speed(job: Job) -> Result:
    """Measure the speed of training."""
    loop = Loop(job)
    on_gpu = loop.device.type == "cuda"
    measurement = Measurement(job, wait=torch.cuda.synchronize if on_gpu else lambda: None)
    for source, target in loop.batches():
        loop.update(source, target)
        if measurement.update(sum(map(len, source)), sum(map(len, target))):
            break
    memory = {"memory": torch.cuda.max_memory_allocated()} if on_gpu else {}
    return {**measurement.result, **memory, "loss": float(loop.loss)}


def minutes(job: Job) -> Result:
    """Train for some minutes, and translate the test set."""
    loop, began, seconds = Loop(job), time.perf_counter(), 0.0
    for source, target in loop.batches():
        loop.update(source, target)
        seconds = time.perf_counter() - began
        loop.last_step = reachable_step(loop.step, seconds, loop.config)  # our rate follows the time, too
        if seconds >= 60 * job["minutes"]:
            break
    loop.model.eval()
    order = sorted(range(len(job["sources"])), key=lambda index: -len(job["sources"][index]))
    hypotheses: list[list[int]] = [[]] * len(order)
    for start in range(0, len(order), SENTENCES):
        chosen = order[start : start + SENTENCES]
        for index, ids in zip(chosen, loop.translate([job["sources"][each] for each in chosen], job), strict=True):
            hypotheses[index] = ids
    return {"updates": loop.step, "seconds": seconds, "hypotheses": hypotheses}


class Loop:
    """A training loop over a new model of the architecture that nmt exports to."""

    def __init__(self, job: Job) -> None:
        torch.set_num_threads(job["threads"])
        torch.manual_seed(job["seed"])
        self.config, self.seed = TrainingConfig(**job["training"]), job["seed"]
        self.store = PairStore.open(Path(job["data"]), "train")
        self.bf16 = job["precision"] == "bf16"
        self.width = job["model"]["d_model"]
        self.device = torch.device(job["device"])
        self.model: Any = transformers.MarianMTModel(_settings(job)).to(self.device).train()
        betas = (self.config.adam_beta1, self.config.adam_beta2)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), betas=betas, eps=self.config.adam_eps, weight_decay=0.0, fused=True
        )
        self.step, self.last_step = 0, self.config.steps
        self.loss = torch.zeros(())

    def batches(self) -> Iterator[tuple[list[IntArray], list[IntArray]]]:
        """Yield sources and targets forever, with end marks."""
        lengths = self.store.pair_lengths
        epoch = 0
        while True:
            plan = plan_epoch(lengths, Batching(self.config.batch_tokens, self.seed), epoch)
            for index in range(len(plan)):
                sources = [np.append(self.store.source(each), EOS) for each in plan[index]]
                yield sources, [np.append(self.store.target(each), EOS) for each in plan[index]]
            epoch += 1

    def update(self, source: list[IntArray], target: list[IntArray]) -> None:
        """Train on one batch."""
        self.step += 1
        mask = pad([np.ones_like(each) for each in source], 0).to(self.device)
        inputs = pad([np.append(BOS, each[:-1]) for each in target], PAD).to(self.device)
        labels = pad(target, IGNORE).to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            ids = pad(source, PAD).to(self.device)
            output = self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=inputs, use_cache=False)
            loss = F.cross_entropy(
                output.logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE,
                label_smoothing=self.config.label_smoothing,
            )  # fmt: skip
        loss.backward()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.config, self.width, self.last_step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss = loss.detach()

    def translate(self, sources: list[list[int]], job: Job) -> list[list[int]]:
        """Return the best translation of each source, as ids without marks."""
        ids = pad([[*source, EOS] for source in sources], PAD)
        mask = pad([[1] * (len(source) + 1) for source in sources], 0)
        with torch.inference_mode():
            found = self.model.generate(
                input_ids=ids, attention_mask=mask, num_beams=job["beam"], length_penalty=1.0, max_length=None,
                max_new_tokens=ids.shape[1] + MAX_EXTRA_PIECES,
            )  # fmt: skip
        return [[piece for piece in row if piece not in (PAD, BOS, EOS)] for row in found.tolist()]


def pad(rows: list[Any], filler: int) -> Tensor:
    """Return the rows as one tensor, with `filler` after the shorter ones."""
    padded = np.full((len(rows), max(map(len, rows))), filler, dtype=np.int64)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(padded)


def _settings(job: Job) -> Any:
    shape, vocabulary_size = job["model"], job["vocabulary_size"]
    return transformers.MarianConfig(
        vocab_size=vocabulary_size, decoder_vocab_size=vocabulary_size, d_model=shape["d_model"],
        encoder_layers=shape["layers"], decoder_layers=shape["layers"], encoder_ffn_dim=shape["d_ff"],
        decoder_ffn_dim=shape["d_ff"], encoder_attention_heads=shape["heads"], decoder_attention_heads=shape["heads"],
        dropout=shape["dropout"], attention_dropout=0.0, activation_dropout=0.0, activation_function="relu",
        scale_embedding=True, static_position_embeddings=True, max_position_embeddings=MAX_POSITIONS,
        bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD, decoder_start_token_id=BOS, forced_eos_token_id=EOS,
    )  # fmt: skip


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    serve(speed=speed, minutes=minutes)
