"""JoeyNMT's training, by its own trainer. It does not sort by length, so it is given text that lies sorted already."""

import contextlib
from pathlib import Path
from typing import Any

import torch
from joeynmt.config import parse_global_args
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager
from protocol import Counts, Job, OverError, Result, Stretch, serve


def speed(job: Job) -> Result:
    """Train for a stretch of time; real tokens are counted in the batches that its trainer is given."""
    torch.set_num_threads(job["threads"])
    stretch = Stretch(job)
    arguments = parse_global_args(settings(job), mode="train")
    model, train, valid, _ = prepare(arguments, rank=0, mode="train")
    manager = TrainManager(
        model=model,
        model_dir=arguments.model_dir,
        device=arguments.device,
        n_gpu=0,
        rank=0,
        num_workers=0,
        # its settings know float16 alone, which CPUs are slow at
        autocast={"device_type": "cpu", "enabled": job["precision"] == "bf16", "dtype": torch.bfloat16},
        seed=arguments.seed,
        train_args=arguments.train,
        dev_args=arguments.test,
    )
    step = manager._train_step
    last = Counts(0, 0)

    def counted(batch: Any) -> Any:
        nonlocal last
        # a batch's update comes after this call: it is over when the next begins
        if last.target and stretch.update(last):
            raise OverError
        last = Counts(int(batch.src_length.sum()), int(batch.ntokens))
        return step(batch)

    manager._train_step = counted
    manager._save_checkpoint = lambda *_: None
    with contextlib.suppress(OverError):
        manager.train_and_validate(train, valid)
    return stretch.result()


def settings(job: Job) -> dict[str, Any]:
    """The same model and batches in JoeyNMT's words."""
    text, training = Path(job["text"]), job["training"]
    work = Path(job["work"]) / "model"
    work.mkdir(exist_ok=True)
    side = {"level": "bpe", "lowercase": False, "voc_file": str(text / "vocabulary.txt"), "max_length": 257}
    side |= {"tokenizer_type": "none", "voc_limit": job["words"], "voc_min_freq": 0}
    return {
        "name": "bench",
        "model_dir": str(work),
        "use_cuda": False,
        "fp16": False,
        "random_seed": job["seed"],
        "data": {
            "train": str(text / "sorted"),
            "dev": str(text / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {"batch_size": 1024, "batch_type": "token", "beam_size": 1},
        "training": {
            "optimizer": "adamw",
            "adam_betas": [training["adam_beta1"], training["adam_beta2"]],
            "learning_rate": 0.0005,
            "learning_rate_min": 0.0,
            "scheduling": None,
            "label_smoothing": training["label_smoothing"],
            "loss": "crossentropy",
            "normalization": "tokens",
            "batch_size": training["batch_tokens"],
            "batch_type": "token",
            "batch_multiplier": 1,
            "shuffle": False,
            "epochs": 1_000_000,
            "updates": 1_000_000,
            "validation_freq": 1_000_000,
            "logging_freq": 1_000,
        },
        "model": _model(job["model"]),
    }


def _model(shape: dict[str, Any]) -> dict[str, Any]:
    side = {
        "type": "transformer",
        "num_layers": shape["layers"],
        "num_heads": shape["heads"],
        "embeddings": {"embedding_dim": shape["d_model"], "scale": True, "dropout": 0.0},
        "hidden_size": shape["d_model"],
        "ff_size": shape["d_ff"],
        "dropout": shape["dropout"],
        "layer_norm": shape["norm_placement"],
        "activation": "relu",
    }
    return {
        "initializer": "xavier_uniform",
        "bias_initializer": "zeros",
        "init_gain": 1.0,
        "embed_initializer": "xavier_uniform",
        "embed_init_gain": 1.0,
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": side,
        "decoder": side,
    }


if __name__ == "__main__":
    serve({"speed": speed})
