"""Train Hugging Face's Marian in a plain loop over batches of sentences of similar length, and translate with it."""

import math
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
import transformers
from padded import IGNORE, PaddedBatch, held_out_batches, pad, training_batches
from protocol import Job, Measurement, Result, clock_of, serve
from torch import Tensor
from torch.nn import functional as F
from translating import MAX_EXTRA_PIECES, in_batches, in_threads, translated_controls
from weights import read_weights

from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.export import huggingface
from nmt.export.target import TrainedModel, export
from nmt.text.special import BOS, EOS, PAD
from nmt.text.tokenizer import Tokenizer
from nmt.training.schedule import learning_rate
from nmt.training.stopping import reachable_step

MAX_POSITIONS = 1536


def speed(job: Job) -> Result:
    """Measure the speed of training."""
    loop = Loop(job)
    on_gpu = loop.device.type == "cuda"
    measurement = Measurement(job, wait=torch.cuda.synchronize if on_gpu else lambda: None)
    for batch in loop.batches:
        loop.update(batch)
        if measurement.update(batch.counts):
            break
    memory = {"memory": torch.cuda.max_memory_allocated()} if on_gpu else {}
    return {**measurement.result(), **memory, "loss": float(loop.loss)}


def curve(job: Job) -> Result:
    """Train for some updates, and evaluate the development loss at regular intervals."""
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
    """Train for some minutes, or until the schedule ends, and translate the test set."""
    loop, clock, seconds = Loop(job), clock_of(job), 0.0
    began = clock()
    for batch in loop.batches:
        loop.update(batch)
        seconds = clock() - began
        loop.last_step = reachable_step(loop.step, seconds, loop.config)  # our rate follows the time, too
        if seconds >= 60 * job["minutes"] or loop.step == loop.config.steps:
            break
    perplexity = math.exp(loop.held_out_loss(job))
    loop.model.eval()
    search = Search(loop.model, job)
    hypotheses = in_batches(job, search, in_threads(job, search))["hypotheses"]
    return {"updates": loop.step, "seconds": seconds, "perplexity": perplexity, "hypotheses": hypotheses}


def translate(job: Job) -> Result:
    """Translate with the weights that `nmt export` writes."""
    torch.set_num_threads(job["threads"])
    folder, tokenizer = Path(job["folder"]) / "model", Tokenizer.load(Path(job["checkpoint"]))
    folder.mkdir()
    config, weights = read_weights(job)
    export(huggingface.TARGET, folder, TrainedModel(Config(model=config), weights, tokenizer))
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    search = Search(model, job)
    return in_batches(job, search, in_threads(job, search))


class Loop:
    """A training loop over the model that nmt exports to, newly initialised."""

    def __init__(self, job: Job) -> None:
        torch.set_num_threads(job["threads"])
        torch.manual_seed(job["seed"])
        self.config = TrainingConfig(**job["training"])
        self.bf16 = job["precision"] == "bf16"
        self.width = job["model"]["d_model"]
        self.device = torch.device(job["device"])
        self.model: Any = transformers.MarianMTModel(_settings(job)).to(self.device).train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            betas=(self.config.adam_beta1, self.config.adam_beta2),
            eps=self.config.adam_eps,
            weight_decay=0.0,
            fused=True,
        )
        self.batches = training_batches(Path(job["data"]), self.config.batch_tokens, job["seed"])
        self.step, self.last_step = 0, self.config.steps
        self.loss = torch.zeros(())

    def update(self, batch: PaddedBatch) -> None:
        """Train on one batch."""
        self.step += 1
        with self.autocast():
            logits, labels = self.logits(batch)
            smoothing = self.config.label_smoothing
            loss = F.cross_entropy(logits, labels, ignore_index=IGNORE, label_smoothing=smoothing)
        loss.backward()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.config, self.width, self.last_step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss = loss.detach()

    def held_out_loss(self, job: Job) -> float:
        """Return the negative log-likelihood of the development set per target token."""
        total, count = 0.0, 0
        self.model.eval()
        with torch.inference_mode(), self.autocast():
            for batch in held_out_batches(Path(job["data"]), self.config.batch_tokens):
                logits, labels = self.logits(batch)
                total += float(F.cross_entropy(logits.float(), labels, ignore_index=IGNORE, reduction="sum"))
                count += batch.counts.target
        self.model.train()
        return total / count

    def logits(self, batch: PaddedBatch) -> tuple[Tensor, Tensor]:
        """Return the logits (tokens, vocabulary) and the labels of a padded batch."""
        source, mask, target, labels = (torch.from_numpy(each).to(self.device) for each in batch[:4])
        output = self.model(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False)
        return output.logits.flatten(0, 1), labels.flatten()

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context in which matrix products have the job's precision."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)


CONTROLS: dict[str, str | dict[str, Any]] = {
    "no_repeat_ngram": "no_repeat_ngram_size",
    "min_length": "min_new_tokens",
    "nbest": "num_return_sequences",
    "strategy": {"do_sample": True, "num_beams": 1},
    "top_k": "top_k",
}
"""Arguments of `generate` by the settings that they correspond to; see `translated_controls`."""


class Search:
    """Hugging Face's beam search over one batch."""

    def __init__(self, model: Any, job: Job) -> None:
        self.model, self.job, self.controls = model, job, translated_controls(job, CONTROLS)

    def __call__(self, sources: list[list[int]]) -> list[list[int]]:
        """Return the best translation of each source, as ids without marks."""
        ids = torch.from_numpy(pad([[*source, EOS] for source in sources], PAD))
        mask = torch.from_numpy(pad([[1] * (len(source) + 1) for source in sources], 0))
        with torch.inference_mode():
            translations = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                length_penalty=self.job["alpha"],
                max_length=None,
                max_new_tokens=ids.shape[1] + MAX_EXTRA_PIECES,
                **{"num_beams": self.job["beam"], **self.controls},
            )
        best = translations[:: self.controls.get("num_return_sequences", 1)]
        return [[piece for piece in row if piece not in (PAD, BOS, EOS)] for row in best.tolist()]


def _settings(job: Job) -> Any:
    shape, vocabulary_size = job["model"], job["vocabulary_size"]
    return transformers.MarianConfig(
        vocab_size=vocabulary_size,
        decoder_vocab_size=vocabulary_size,
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
        max_position_embeddings=MAX_POSITIONS,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        decoder_start_token_id=BOS,
        forced_eos_token_id=EOS,
    )


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    serve({"speed": speed, "curve": curve, "minutes": minutes, "translate": translate})
