"""Train with eole, whose own trainer sorts by length in a bucket that holds the corpus; it only supports pre-norm."""

import contextlib
from pathlib import Path
from typing import Any

from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.trainer import Trainer
from protocol import Job, Measurement, Result, serve

from nmt.errors import UserError

BUCKET_SENTENCES = 262_144
"""Sentences that eole sorts together by default; with more than the corpus has, it would read the corpus repeatedly."""
NEVER = 1_000_000
"""A step that is not reached."""


class FinishedError(Exception):
    """Leaves eole's training loop when the measurement is complete."""


def speed(job: Job) -> Result:
    """Measure the speed of eole's own trainer, counting tokens without padding in the batches that it receives."""
    if job["device"] != "cpu":
        raise UserError("its driver trains on CPUs only")
    measurement = Measurement(job)
    step = Trainer._train_step

    def counted(self: Any, batches: list[dict[str, Any]], *rest: Any, **named: Any) -> None:
        step(self, batches, *rest, **named)
        # its sources have no end mark, which the other engines' have; its targets have a start mark, which is no label
        source = sum(int(each["srclen"].sum()) + len(each["srclen"]) for each in batches)
        target = sum(int(each["tgt"][:, 1:].ne(self.train_loss.padding_idx).sum()) for each in batches)
        if measurement.update(source, target):
            raise FinishedError

    Trainer._train_step = counted
    with contextlib.suppress(FinishedError):
        train(TrainConfig(**settings(job)))
    return measurement.result


def settings(job: Job) -> dict[str, Any]:
    """Return what differs from eole's defaults for the same model and batches."""
    text, model, training = Path(job["text"]), job["model"], job["training"]
    corpus = {"path_src": str(text / "train.source"), "path_tgt": str(text / "train.target")}
    sentences = len((text / "train.source").read_text(encoding="utf-8").splitlines())
    return {
        "data": {"corpus": corpus},
        "src_vocab": str(text / "vocabulary.txt"),
        "tgt_vocab": str(text / "vocabulary.txt"),
        "share_vocab": True,
        "src_vocab_size": job["vocabulary_size"],
        "tgt_vocab_size": job["vocabulary_size"],
        "pad_token": "<pad>",
        "seed": job["seed"],
        "overwrite": True,
        "training": {
            "compute_dtype": job["precision"],
            "batch_type": "tokens",
            "batch_size": training["batch_tokens"],
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
            "dropout": [model["dropout"]],
            "attention_dropout": [0.0],
            "param_init": 0,
            "param_init_method": "xavier_uniform",
            "train_steps": NEVER,
            "save_checkpoint_steps": NEVER,
            "valid_steps": NEVER,
            "model_path": f"{job['folder']}/model",
        },
        "model": {
            "architecture": "transformer",
            "layers": model["layers"],
            "hidden_size": model["d_model"],
            "transformer_ff": model["d_ff"],
            "heads": model["heads"],
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_qkvbias": True,
            "add_final_linear_bias": True,
            "add_ffnbias": True,
            "embeddings": {
                "word_vec_size": model["d_model"],
                "position_encoding": True,
            },
        },
    }


if __name__ == "__main__":
    serve(speed=speed)
