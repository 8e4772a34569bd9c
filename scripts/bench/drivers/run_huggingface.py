"""Hugging Face's Marian in a plain loop over batches of sentences of like length."""

import math
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
import transformers
from padded import IGNORE, Rectangles, held_out_batches, rectangle, training_batches
from protocol import Job, Result, Stretch, serve
from torch import Tensor
from torch.nn import functional as F
from translating import LONGER, in_batches, in_threads
from weights import read_weights

from nmt.config.schema import TrainingConfig
from nmt.export import huggingface
from nmt.text.special import BOS, EOS, PAD
from nmt.text.tokenizer import Tokenizer
from nmt.training.schedule import learning_rate

POSITIONS = 1536


def speed(job: Job) -> Result:
    """Train for a stretch of time."""
    loop, stretch = Loop(job), Stretch(job)
    for batch in loop.batches:
        loop.update(batch)
        if stretch.update(batch.counts):
            break
    return {**stretch.result(), "loss": loop.loss}


def curve(job: Job) -> Result:
    """Train for some updates, and look at the development set on the way."""
    loop = Loop(job)
    points, seconds, tokens = [], 0.0, 0
    for batch in loop.batches:
        began = time.perf_counter()
        loop.update(batch)
        seconds += time.perf_counter() - began
        tokens += sum(batch.counts)
        if loop.step % job["every"] == 0:
            points.append({"updates": loop.step, "tokens": tokens, "seconds": seconds, "loss": loop.held_out_loss(job)})
        if loop.step == job["updates"]:
            break
    return {"points": points}


def minutes(job: Job) -> Result:
    """Train for some minutes and translate the test set; the schedule has as many steps as there will be time for."""
    loop, began = Loop(job), time.perf_counter()
    for batch in loop.batches:
        loop.update(batch)
        if time.perf_counter() - began >= 60 * job["minutes"] or loop.step == loop.config.steps:
            break
    seconds = time.perf_counter() - began
    perplexity = math.exp(loop.held_out_loss(job))
    loop.model.eval()
    search = Search(loop.model, job)
    hypotheses = in_batches(job, search, in_threads(job, search))["hypotheses"]
    return {"updates": loop.step, "seconds": seconds, "perplexity": perplexity, "hypotheses": hypotheses}


def translate(job: Job) -> Result:
    """Translate with the weights that `nmt export` would write."""
    torch.set_num_threads(job["threads"])
    folder, tokenizer = Path(job["work"]) / "model", Tokenizer.load(Path(job["checkpoint"]))
    folder.mkdir()
    huggingface.write(folder, *read_weights(job), tokenizer, ("source", "target"), {})
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    search = Search(model, job)
    return in_batches(job, search, in_threads(job, search))


class Loop:
    """Model, optimizer and batches; the model as this project exports it, freshly initialised."""

    def __init__(self, job: Job) -> None:
        torch.set_num_threads(job["threads"])
        torch.manual_seed(job["seed"])
        self.config = TrainingConfig(**job["training"])
        self.bf16 = job["precision"] == "bf16"
        self.width = job["model"]["d_model"]
        self.model: Any = transformers.MarianMTModel(_settings(job)).train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            betas=(self.config.adam_beta1, self.config.adam_beta2),
            eps=self.config.adam_eps,
            weight_decay=0.0,
            fused=True,
        )
        self.batches = training_batches(Path(job["data"]), self.config.batch_tokens, job["seed"])
        self.step, self.loss = 0, 0.0

    def update(self, batch: Rectangles) -> None:
        """Train on a batch."""
        self.step += 1
        with self.autocast():
            logits, labels = self.scores(batch)
            smoothing = self.config.label_smoothing
            loss = F.cross_entropy(logits, labels, ignore_index=IGNORE, label_smoothing=smoothing)
        loss.backward()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.config, self.width)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss = float(loss.detach())

    def held_out_loss(self, job: Job) -> float:
        """Negative log-likelihood of the development set, a target token."""
        total, count = 0.0, 0
        self.model.eval()
        with torch.inference_mode(), self.autocast():
            for batch in held_out_batches(Path(job["data"]), self.config.batch_tokens):
                logits, labels = self.scores(batch)
                total += float(F.cross_entropy(logits.float(), labels, ignore_index=IGNORE, reduction="sum"))
                count += batch.counts.target
        self.model.train()
        return total / count

    def scores(self, batch: Rectangles) -> tuple[Tensor, Tensor]:
        """Scores (tokens, words), and the labels, of a padded batch."""
        source, mask, target, labels = (torch.from_numpy(each) for each in batch[:4])
        found = self.model(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False)
        return found.logits.flatten(0, 1), labels.flatten()

    def autocast(self) -> AbstractContextManager[object]:
        """Where products are in the job's precision."""
        return torch.autocast("cpu", torch.bfloat16, enabled=self.bf16)


class Search:
    """Hugging Face's beam search over a batch."""

    def __init__(self, model: Any, job: Job) -> None:
        self.model, self.job = model, job

    def __call__(self, sources: list[list[int]]) -> list[list[int]]:
        """Ids without marks of the best translations."""
        ids = torch.from_numpy(rectangle([[*source, EOS] for source in sources], PAD))
        mask = torch.from_numpy(rectangle([[1] * (len(source) + 1) for source in sources], 0))
        with torch.inference_mode():
            found = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                num_beams=self.job["beam"],
                length_penalty=self.job["alpha"],
                max_length=None,
                max_new_tokens=ids.shape[1] + LONGER,
            )
        return [[piece for piece in row if piece not in (PAD, BOS, EOS)] for row in found.tolist()]


def _settings(job: Job) -> Any:
    shape, words = job["model"], job["words"]
    return transformers.MarianConfig(
        vocab_size=words,
        decoder_vocab_size=words,
        d_model=shape["d_model"],
        encoder_layers=shape["layers"],
        decoder_layers=shape["layers"],
        encoder_ffn_dim=shape["d_ff"],
        decoder_ffn_dim=shape["d_ff"],
        encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"],
        dropout=shape["dropout"],
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        static_position_embeddings=True,
        max_position_embeddings=POSITIONS,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        decoder_start_token_id=BOS,
        forced_eos_token_id=EOS,
    )


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    serve({"speed": speed, "curve": curve, "minutes": minutes, "translate": translate})
