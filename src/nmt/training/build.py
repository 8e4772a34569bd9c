"""Build a trainer from the settings, and its batches from a text, without the files of a run."""

from collections.abc import Callable, Iterator

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine, is_amd
from nmt.config.registry import load
from nmt.config.tree import Config
from nmt.data.batches import Batching
from nmt.data.loader import GlobalBatch, global_batches
from nmt.data.noise import Noise
from nmt.data.store import Pairs
from nmt.errors import CommonError
from nmt.model.backends.chosen import choose
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.training.fine_tuning import freeze
from nmt.training.memory_check import check_model_size
from nmt.training.replicas import Replicas
from nmt.training.trainer import Trainer


def build_trainer(
    config: Config,
    machine: Machine,
    vocabularies: tuple[int, int],
    begin: Callable[[TranslationModel], str] | None = None,
) -> Trainer:
    """Return a trainer with a new model, seeded by the settings.

    Args:
        config: The settings.
        machine: The device of this process.
        vocabularies: The sizes of the source's and the target's vocabulary.
        begin: Gives the model other weights than random ones, and returns a line for the user.
    """
    replicas: type[Replicas] = load("runtime.shard", config.runtime.shard)
    shards = distributed.world_size() if replicas.divides_weights else 1
    check_model_size(config.model, config.training, vocabularies, machine, shards)
    choose(machine, kernels=config.runtime.kernels, compiled=config.runtime.compile)
    torch.manual_seed(config.seed)
    model = build_model(config.model, *vocabularies)
    with distributed.together():
        if begin is not None:
            line = begin(model)
            if distributed.is_main():
                print(line, flush=True)
        if config.training.freeze:
            freeze(model, config.training.freeze)
    graphs = _records_graphs(config, machine, divided=replicas.divides_weights)
    if config.runtime.compile:
        _compile(model)
    return Trainer(model, config.training, machine, config.seed, replicas=replicas, graphs=graphs)


def training_batches(trainer: Trainer, text: Pairs, noise: Noise | None = None) -> Iterator[GlobalBatch]:
    """Return the global batches of a text for this process, from the trainer's position in it on."""
    config, gradient = trainer.config, trainer.gradient
    return global_batches(
        text,
        Batching.of(config, gradient.seed),
        device_tokens=config.device_tokens,
        start=trainer.data_position,
        rank=distributed.rank(),
        devices=distributed.world_size(),
        threads=gradient.concurrency,
        shapes=trainer.shapes(config.device_tokens),
        noise=noise,
        with_links=trainer.needs_links,
        with_words=gradient.needs_words,
    )


def _compile(model: TranslationModel) -> None:
    """Compile the model at its first call: one graph for batches of all sizes."""
    from torch.fx.experimental import _config as fx_config  # noqa: PLC0415 - imports much of torch

    # two sizes that are equal in the first batch, such as those of source and target, may differ in the next
    fx_config.use_duck_shape = False
    model.compile(dynamic=True)


def _records_graphs(config: Config, machine: Machine, *, divided: bool) -> bool:
    """Return whether passes are recorded as CUDA graphs, unless the settings or the rest of the run rule it out."""
    wanted = config.runtime.cuda_graphs
    if wanted is False or (wanted is None and config.runtime.compile):
        return False
    obstacle = "the weights are divided" if divided else _obstacle_to_graphs(config, machine)
    if obstacle and wanted:
        raise CommonError(f"runtime.cuda_graphs=true is not possible, because {obstacle}: leave it out")
    return not obstacle


def _obstacle_to_graphs(config: Config, machine: Machine) -> str:
    """Return why passes cannot be recorded as CUDA graphs; empty if they can."""
    if machine.device.type != "cuda" or is_amd():
        return "they need a GPU of NVIDIA"
    if machine.precision == torch.float16:
        return "in fp16 the factor of the loss changes"
    if config.training.r_drop or config.training.guided_weight:
        return "the loss has more than one term"
    return ""
