"""Train and translate with JoeyNMT. Its trainer does not sort by length, so it reads a text sorted in advance."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from joeynmt.batch import MicroBatch
from joeynmt.config import parse_global_args
from joeynmt.prediction import prepare
from joeynmt.search import search
from joeynmt.training import TrainManager
from padded import pad
from protocol import Counts, FinishedError, Job, Measurement, Result, serve
from torch import Tensor
from translating import MAX_EXTRA_PIECES, in_batches, translated_controls
from weights import read_weights

from nmt.config.model import ModelConfig
from nmt.text.special import BOS, EOS, PAD


def speed(job: Job) -> Result:
    """Measure the speed of JoeyNMT's own trainer, counting tokens without padding in the batches that it receives."""
    torch.set_num_threads(job["threads"])
    measurement = Measurement(job)
    arguments = parse_global_args(settings(job), mode="train")
    model, train, valid, _ = prepare(arguments, rank=0, mode="train")
    manager = TrainManager(
        model=model,
        model_dir=arguments.model_dir,
        device=arguments.device,
        n_gpu=0,
        rank=0,
        num_workers=0,
        # its settings only offer float16, which is slow on CPUs
        autocast={"device_type": "cpu", "enabled": job["precision"] == "bf16", "dtype": torch.bfloat16},
        seed=arguments.seed,
        train_args=arguments.train,
        dev_args=arguments.test,
    )
    step = manager._train_step
    last = Counts(0, 0)

    def counted(batch: Any) -> Any:
        nonlocal last
        # JoeyNMT updates the weights after this call, so the update has ended when the next call begins
        if last.target and measurement.update(last):
            raise FinishedError
        last = Counts(int(batch.src_length.sum()), int(batch.ntokens))
        return step(batch)

    manager._train_step = counted
    manager._save_checkpoint = lambda *_: None
    with contextlib.suppress(FinishedError):
        manager.train_and_validate(train, valid)
    return measurement.result()


def translate(job: Job) -> Result:
    """Translate batch by batch with nmt's weights."""
    translated_controls(job, {})
    torch.set_num_threads(job["threads"])
    config, weights = read_weights(job)
    arguments = parse_global_args(settings(job), mode="train")
    model, _, _, _ = prepare(arguments, rank=0, mode="train")
    model.load_state_dict(dict(_converted(config, weights)), strict=False)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = torch.nn.LayerNorm(1).eps  # JoeyNMT's default is smaller
    model.eval()

    def translate_batch(sources: list[list[int]]) -> list[list[int]]:
        ids = torch.from_numpy(pad([[*source, EOS] for source in sources], PAD))
        lengths = torch.tensor([len(source) + 1 for source in sources])
        batch = MicroBatch(ids, lengths, None, None, None, torch.arange(len(ids)), ids.device, PAD, EOS, is_train=False)
        with torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bf16"):
            translations, _, _ = search(batch=batch, model=model, max_output_length=ids.shape[1] + MAX_EXTRA_PIECES,
                                 beam_size=job["beam"], beam_alpha=job["alpha"])  # fmt: skip
        return [[piece for piece in row if piece not in (PAD, BOS, EOS)] for row in translations.tolist()]

    return in_batches(job, translate_batch)


def _converted(config: ModelConfig, weights: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights with their names in JoeyNMT."""
    for name in ("src_embed.lut", "trg_embed.lut", "decoder.output_layer"):
        yield f"{name}.weight", weights["vectors.shared"]

    def linear(theirs: str, ours: str, names: tuple[str, ...] = ("",)) -> Iterator[tuple[str, Tensor]]:
        for kind in ("weight", "bias"):
            for name, values in zip(names, weights[f"{ours}.{kind}"].chunk(len(names)), strict=True):
                yield f"{theirs}{name}.{kind}", values

    for stack, self_attention, norm in (
        ("encoder", "src_src_att", "layer_norm"),
        ("decoder", "trg_trg_att", "x_layer_norm"),
    ):
        if config.norm_placement == "pre":
            yield from linear(f"{stack}.layer_norm", f"{stack}_norm")
        for index in range(config.layers):
            theirs, ours = f"{stack}.layers.{index}", f"{stack}.{index}"
            query_key_value = ("q_layer", "k_layer", "v_layer")
            yield from linear(f"{theirs}.{self_attention}.", f"{ours}.attention.query_key_value", query_key_value)
            yield from linear(f"{theirs}.{self_attention}.output_layer", f"{ours}.attention.output")
            yield from linear(f"{theirs}.{norm}", f"{ours}.attention_residual.norm")
            yield from linear(f"{theirs}.feed_forward.pwff_layer.0", f"{ours}.feed_forward.inner")
            yield from linear(f"{theirs}.feed_forward.pwff_layer.3", f"{ours}.feed_forward.outer")
            yield from linear(f"{theirs}.feed_forward.layer_norm", f"{ours}.feed_forward_residual.norm")
            if stack == "decoder":
                yield from linear(f"{theirs}.src_trg_att.q_layer", f"{ours}.cross_attention.query")
                yield from linear(f"{theirs}.src_trg_att.", f"{ours}.cross_attention.key_value", query_key_value[1:])
                yield from linear(f"{theirs}.src_trg_att.output_layer", f"{ours}.cross_attention.output")
                yield from linear(f"{theirs}.dec_layer_norm", f"{ours}.cross_attention_residual.norm")


def settings(job: Job) -> dict[str, Any]:
    """Return JoeyNMT's settings for the same model and batches."""
    text, training = Path(job["text"]), job["training"]
    folder = Path(job["folder"]) / "model"
    folder.mkdir(exist_ok=True)
    language = {"level": "word", "lowercase": False, "voc_file": str(text / "vocabulary.txt"), "max_length": 257}
    language |= {"voc_limit": job["vocabulary_size"], "voc_min_freq": 0}
    return {
        "name": "bench",
        "model_dir": str(folder),
        "use_cuda": False,
        "fp16": False,
        "random_seed": job["seed"],
        "data": {
            "train": str(text / "sorted"),
            "dev": str(text / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "source", **language},
            "trg": {"lang": "target", **language},
        },
        "testing": {"batch_size": 1024, "batch_type": "token", "beam_size": 1},
        "training": {
            "optimizer": "adamw",
            "adam_betas": [training["adam_beta1"], training["adam_beta2"]],
            "learning_rate": 0.0005,
            "learning_rate_min": 0.0,
            "scheduling": "noam",
            "learning_rate_factor": 1,
            "learning_rate_warmup": training["warmup_steps"],
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
    stack = {
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
        "encoder": stack,
        "decoder": stack,
    }


if __name__ == "__main__":
    serve({"speed": speed, "translate": translate})
