"""Build a trainer from the settings, and its batches from a text, without the files of a run."""

from collections.abc import Callable, Iterator

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine, explaining_out_of_memory, is_amd
from nmt.config.tree import Config
from nmt.data.batches import Batching
from nmt.data.loader import GlobalBatch, global_batches
from nmt.data.noise import Noise
from nmt.data.store import PairStore
from nmt.errors import CommonError
from nmt.model.backends.chosen import choose
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.training.fine_tuning import freeze
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
    replicas: type[Replicas] = Replicas
    if config.runtime.shard == "weights":
        from nmt.training.divided import DividedWeights  # noqa: PLC0415 - takes long to import

        replicas = DividedWeights
    too_large = (
        f"the model does not fit in the memory of {machine}: lower model.layers, model.d_model or model.d_ff, or "
        "divide it between several GPUs with runtime.shard=weights"
    )
    choose(machine, kernels=config.runtime.kernels, compiled=config.runtime.compile)
    torch.manual_seed(config.seed)
    with explaining_out_of_memory(too_large):
        model = build_model(config.model, *vocabularies)
    with distributed.together():
        line = "" if begin is None else begin(model)
        freeze(model, config.training.freeze)
    if line and distributed.is_main():
        print(line, flush=True)
    if config.runtime.compile:
        compile_model(model)
    graphs = records_graphs(config, machine)
    with explaining_out_of_memory(too_large):
        return Trainer(model, config.training, machine, config.seed, replicas=replicas, graphs=graphs)


def training_batches(trainer: Trainer, text: PairStore, noise: Noise | None = None) -> Iterator[GlobalBatch]:
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
        with_links=config.guided_weight > 0,
    )


def compile_model(model: TranslationModel) -> None:
    """Compile the model at its first call: one graph for batches of all sizes."""
    from torch.fx.experimental import _config as fx_config  # noqa: PLC0415 - imports much of torch

    # two sizes that are equal in the first batch, such as those of source and target, may differ in the next
    fx_config.use_duck_shape = False
    model.compile(dynamic=True)


def records_graphs(config: Config, machine: Machine) -> bool:
    """Return whether passes are recorded as CUDA graphs, unless the settings or the rest of the run rule it out."""
    wanted = config.runtime.cuda_graphs
    if wanted is False or (wanted is None and config.runtime.compile):
        return False
    obstacles = {
        "the weights are divided": config.runtime.shard == "weights",
        "they need a GPU of NVIDIA": machine.device.type != "cuda" or is_amd(),
        "in fp16 the factor of the loss changes": machine.precision == torch.float16,
        "the loss has more than one term": config.training.guided_weight > 0,
    }
    found = next((each for each, holds in obstacles.items() if holds), "")
    if found and wanted:
        raise CommonError(f"runtime.cuda_graphs=true is not possible, because {found}: leave it out")
    return not found
