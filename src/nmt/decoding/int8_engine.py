"""The model itself with its weights in int8: `engine=int8`."""

from functools import partial

import torch

from nmt.compute.machine import Machine
from nmt.config.tree import Config
from nmt.decoding.load_engine import load_checkpoints
from nmt.decoding.loaded_model import LoadedModel
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.model.backends.chosen import choose
from nmt.model.cpu.prepared_weights import prepare_for_cpu


class Int8Engine(TorchEngine):
    """Translates on a CPU with the weights of matrix products in int8."""

    name = "int8"
    prepare_for_cpu = staticmethod(partial(prepare_for_cpu, int8=True))


def load_in_int8(config: Config, machine: Machine) -> LoadedModel:
    """Load what the settings name with its weights in int8."""
    if machine.device.type != "cpu":
        raise UserError(f"engine=int8 translates on CPUs only, not on {machine.device.type}: use engine=torch")
    if choose(machine, kernels=config.runtime.kernels, trains=False).name != "cpu":
        raise UserError(
            "engine=int8 needs the operations in C: install a C compiler, such as gcc, and leave out "
            "runtime.kernels=false; or use engine=torch"
        )
    return load_checkpoints(config, machine._replace(precision=torch.float32), Int8Engine)
