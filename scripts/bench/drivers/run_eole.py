"""Train and translate with eole, which only supports pre-norm.

Its own trainer sorts by length in a bucket that holds the corpus. For translation, eole trains for one step and saves
a model, whose weights are then replaced with nmt's.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import PredictConfig, TrainConfig
from eole.inference_engine import InferenceEnginePY
from eole.trainer import Trainer
from protocol import Counts, FinishedError, Job, Measurement, RefusedError, Result, serve
from safetensors.torch import load_file, save_file
from torch import Tensor
from translating import MAX_EXTRA_PIECES, in_batches, translated_controls
from weights import read_weights

from nmt.config.model import ModelConfig

BUCKET_SENTENCES = 262_144
"""Sentences that eole sorts together by default; with more than the corpus has, it would read the corpus repeatedly."""
PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"


def speed(job: Job) -> Result:
    """Measure the speed of eole's own trainer, counting tokens without padding in the batches that it receives."""
    if job["device"] != "cpu":
        raise RefusedError("its driver trains on CPUs only")
    measurement = Measurement(job)
    step = Trainer._train_step

    def counted(self: Any, batches: list[dict[str, Any]], *rest: Any, **named: Any) -> None:
        step(self, batches, *rest, **named)
        if measurement.update(_count(batches, self.train_loss.padding_idx)):
            raise FinishedError

    Trainer._train_step = counted
    with contextlib.suppress(FinishedError):
        train(TrainConfig(**settings(job)))
    return measurement.result()


def translate(job: Job) -> Result:
    """Translate batch by batch with nmt's weights, from word pieces to word pieces."""
    translated_controls(job, {})
    if job["model"]["norm_placement"] != "pre":
        raise RefusedError("eole only supports pre-norm: measure a model trained with model.norm_placement=pre")
    torch.set_num_threads(job["threads"])
    pieces = (Path(job["text"]) / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    ids = {piece: index for index, piece in enumerate(pieces)}
    engine = InferenceEnginePY(
        PredictConfig(
            model_path=[str(_converted(job))],
            src="given line by line",
            world_size=1,
            gpu_ranks=[],
            compute_dtype="fp32",
            beam_size=job["beam"],
            length_penalty="wu",
            alpha=job["alpha"],
            batch_size=job["batch"],
        )
    )

    def translate_batch(sources: list[str]) -> list[list[int]]:
        longest = max(len(source.split(" ")) for source in sources)
        _, _, translations = engine.infer_list(sources, {"max_length": longest + MAX_EXTRA_PIECES})
        return [[ids[piece] for piece in best.split(" ") if piece] for best, *_ in translations]

    sources = [" ".join([*(pieces[piece] for piece in each), EOS]) for each in job["sources"]]
    return in_batches(job, translate_batch, sources=sources)


def _converted(job: Job) -> Path:
    """Write a model folder of eole with nmt's weights; return its path."""
    options = settings(job)
    options["training"] |= {"train_steps": 1, "save_checkpoint_steps": 1, "bucket_size": job["batch"], "batch_size": 64}
    train(TrainConfig(**options))
    folder = Path(options["training"]["model_path"])
    file = folder / "model.00.safetensors"
    theirs = load_file(file)
    ours = {**theirs, "generator.bias": torch.zeros(job["vocabulary_size"]), **dict(_renamed(*read_weights(job)))}
    if unmatched := {
        name for name in theirs.keys() | ours if ours[name].shape != theirs.get(name, torch.empty(0)).shape
    }:
        raise RefusedError(f"eole's model has no matching weights for {', '.join(sorted(unmatched))}")
    file.unlink()
    save_file(ours, file)
    return folder


def _renamed(config: ModelConfig, weights: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights with their names in eole."""
    yield "src_emb.embeddings.weight", weights["vectors.shared"]

    def renamed(theirs: str, ours: str, names: tuple[str, ...] = ("",)) -> Iterator[tuple[str, Tensor]]:
        for kind in ("weight", "bias"):
            for name, values in zip(names, weights[f"{ours}.{kind}"].chunk(len(names)), strict=True):
                yield f"{theirs}{name}.{kind}", values.clone()

    for stack in ("encoder", "decoder"):
        yield from renamed(f"{stack}.layer_norm", f"{stack}_norm")
        for index in range(config.layers):
            theirs, ours = f"{stack}.transformer_layers.{index}", f"{stack}.{index}"
            yield from renamed(f"{theirs}.input_layernorm", f"{ours}.attention_residual.norm")
            yield from renamed(
                f"{theirs}.self_attn.linear_", f"{ours}.attention.query_key_value", ("query", "keys", "values")
            )
            yield from renamed(f"{theirs}.self_attn.final_linear", f"{ours}.attention.output")
            yield from renamed(f"{theirs}.post_attention_layernorm", f"{ours}.feed_forward_residual.norm")
            yield from renamed(f"{theirs}.mlp.gate_up_proj", f"{ours}.feed_forward.inner")
            yield from renamed(f"{theirs}.mlp.down_proj", f"{ours}.feed_forward.outer")
            if stack == "decoder":
                context = f"{theirs}.context_attn"
                yield from renamed(f"{theirs}.precontext_layernorm", f"{ours}.cross_attention_residual.norm")
                yield from renamed(f"{context}.linear_query", f"{ours}.cross_attention.query")
                yield from renamed(f"{context}.linear_", f"{ours}.cross_attention.key_value", ("keys", "values"))
                yield from renamed(f"{context}.final_linear", f"{ours}.cross_attention.output")


def _count(batches: list[dict[str, Any]], padding: int) -> Counts:
    """Return the number of tokens without padding.

    eole's sources have no end mark, which is added because the other engines' have one. Its targets have a start mark,
    which is not a label.
    """
    source = sum(int(each["srclen"].sum()) + len(each["srclen"]) for each in batches)
    target = sum(int(each["tgt"][:, 1:].ne(padding).sum()) for each in batches)
    return Counts(source, target)


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
    serve({"speed": speed, "translate": translate})
