"""Build a trainer from the settings, without the files of a run."""

from collections.abc import Callable

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine, is_amd
from nmt.config.registry import load
from nmt.config.tree import Config
from nmt.errors import CommonError
from nmt.model.attention_choice import plan_for
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.kernels.choice import use_kernels
from nmt.training.freeze import freeze
from nmt.training.memory_check import check_model_size
from nmt.training.replicas import Replicas
from nmt.training.trainer import Trainer


def new_trainer(
    config: Config,
    machine: Machine,
    source_vocabulary: int,
    target_vocabulary: int,
    begin: Callable[[TranslationModel], None] | None = None,
) -> Trainer:
    """Return a trainer with a new model, seeded by the settings; `begin` may give it other weights."""
    replicas: type[Replicas] = load("runtime.shard", config.runtime.shard)
    shards = distributed.world_size() if replicas.divides_weights else 1
    check_model_size(config.model, config.training, source_vocabulary, target_vocabulary, machine, shards)
    use_kernels(machine, wanted=config.runtime.kernels)
    torch.manual_seed(config.seed)
    model = build_model(config.model, source_vocabulary, target_vocabulary)
    with distributed.together():
        if begin is not None:
            begin(model)
        if config.training.freeze:
            freeze(model, config.training.freeze)
    model.plan = plan_for(config.runtime.attention, machine.device.type, machine.precision, config.model)
    runtime = config.runtime
    graphs = _records_graphs(config, machine, divided=replicas.divides_weights)
    if runtime.compile:
        from nmt.training.compiled import compile_model  # noqa: PLC0415 - imports much of torch

        compile_model(model)
    return Trainer(
        model,
        config.training,
        machine,
        config.seed,
        replicas=replicas,
        graphs=graphs,
    )


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
    if config.model.layer_drop:
        return "layers are skipped at random"
    return ""
