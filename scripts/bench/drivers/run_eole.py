"""Train with eole, whose own trainer sorts by length in a bucket that holds the corpus; it only supports pre-norm."""

import contextlib
from pathlib import Path
from typing import Any

from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.trainer import Trainer
from protocol import Job, Measurement, RefusedError, Result, serve

BUCKET_SENTENCES = 262_144
"""Sentences that eole sorts together by default; with more than the corpus has, it would read the corpus repeatedly."""
PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"


class FinishedError(Exception):
    """Leaves eole's training loop when the measurement is complete."""


def speed(job: Job) -> Result:
    """Measure the speed of eole's own trainer, counting tokens without padding in the batches that it receives."""
    if job["device"] != "cpu":
        raise RefusedError("its driver trains on CPUs only")
    measurement = Measurement(job)
    step = Trainer._train_step

    def counted(self: Any, batches: list[dict[str, Any]], *rest: Any, **named: Any) -> None:
        step(self, batches, *rest, **named)
        if measurement.update(*_count(batches, self.train_loss.padding_idx)):
            raise FinishedError

    Trainer._train_step = counted
    with contextlib.suppress(FinishedError):
        train(TrainConfig(**settings(job)))
    return measurement.result()


def _count(batches: list[dict[str, Any]], padding: int) -> tuple[int, int]:
    """Return the number of tokens without padding.

    eole's sources have no end mark, which is added because the other engines' have one. Its targets have a start mark,
    which is not a label.
    """
    source = sum(int(each["srclen"].sum()) + len(each["srclen"]) for each in batches)
    target = sum(int(each["tgt"][:, 1:].ne(padding).sum()) for each in batches)
    return source, target


def settings(job: Job) -> dict[str, Any]:
    """Return eole's settings for the same model and batches."""
    text = Path(job["text"])
    return {
        "seed": job["seed"],
        "report_every": 1000,
        "src_vocab": str(text / "vocabulary.txt"),
        "tgt_vocab": str(text / "vocabulary.txt"),
        "share_vocab": True,
        "src_vocab_size": job["vocabulary_size"],
        "tgt_vocab_size": job["vocabulary_size"],
        "pad_token": PAD,
        "unk_token": UNK,
        "bos_token": BOS,
        "eos_token": EOS,
        "decoder_start_token": BOS,
        "overwrite": True,
        "data": {"corpus": {"path_src": str(text / "train.source"), "path_tgt": str(text / "train.target")}},
        "training": _training(job),
        "model": _model(job),
    }


def _training(job: Job) -> dict[str, Any]:
    training = job["training"]
    sentences = len((Path(job["text"]) / "train.source").read_text(encoding="utf-8").splitlines())
    return {
        "world_size": 1,
        "gpu_ranks": [],
        "compute_dtype": "bf16" if job["precision"] == "bf16" else "fp32",
        "use_amp": True,
        "batch_type": "tokens",
        "batch_size": training["batch_tokens"],
        "batch_size_multiple": 1,
        "bucket_size": min(BUCKET_SENTENCES, sentences),
        "num_workers": 0,
        "normalization": "tokens",
        "optim": "adam",
        "adam_beta1": training["adam_beta1"],
        "adam_beta2": training["adam_beta2"],
        "adam_eps": training["adam_eps"],
        "learning_rate": 2.0,
        "decay_method": "noam",
        "warmup_steps": training["warmup_steps"],
        "max_grad_norm": 0,
        "label_smoothing": training["label_smoothing"],
        "dropout": [job["model"]["dropout"]],
        "attention_dropout": [0.0],
        "param_init": 0,
        "param_init_method": "xavier_uniform",
        "log_attention_entropy": False,
        "train_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
        "valid_steps": 1_000_000,
        "model_path": str(Path(job["folder"]) / "model"),
    }


def _model(job: Job) -> dict[str, Any]:
    shape = job["model"]
    return {
        "architecture": "transformer",
        "layers": shape["layers"],
        "hidden_size": shape["d_model"],
        "transformer_ff": shape["d_ff"],
        "heads": shape["heads"],
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "add_qkvbias": True,
        "add_final_linear_bias": True,
        "add_ffnbias": True,
        "embeddings": {
            "word_vec_size": shape["d_model"],
            "position_encoding": True,
            "position_encoding_type": "SinusoidalInterleaved",
        },
    }


if __name__ == "__main__":
    serve({"speed": speed})
