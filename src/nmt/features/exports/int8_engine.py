"""The model itself with its weights in int8, as a choice of `engine`."""

from functools import partial

import torch

from nmt.compute.machine import Machine
from nmt.config.saved import from_yaml
from nmt.config.schema import Config
from nmt.decoding.load_engine import load_checkpoints
from nmt.decoding.loaded_model import LoadedModel
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.evaluation.bleu import bleu_tokenizer, make_bleu
from nmt.features.exports.export_checkpoint import CPU, beam_search_of, read_sample, record_of
from nmt.features.exports.record import VerificationRecord
from nmt.features.exports.verify import accept, compare_quality, compare_speed, verify
from nmt.model.cpu.prepared_weights import prepare_for_cpu
from nmt.model.kernels.c.library import use_operations
from nmt.runs.checkpoints import load, resolve


class Int8Engine(TorchEngine):
    """Translates on a CPU with the weights of matrix products in int8."""

    name = "int8"
    prepare_for_cpu = staticmethod(partial(prepare_for_cpu, int8=True))


def load_in_int8(config: Config, machine: Machine) -> LoadedModel:
    """Load what the settings name with its weights in int8."""
    if machine.device.type != "cpu":
        raise UserError(f"engine=int8 translates on CPUs only, not on {machine.device.type}: use engine=torch")
    if not has_operations(config):
        raise UserError(
            "engine=int8 needs the operations in C: install a C compiler, such as gcc, and leave out "
            "runtime.c_operations=false; or use engine=torch"
        )
    return load_checkpoints(config, machine._replace(precision=torch.float32), Int8Engine)


def has_operations(config: Config) -> bool:
    """Return whether products in int8 can be computed: by operations in C, which are then in use."""
    return config.runtime.c_operations and use_operations(True, only=torch.float32)


def compare_with_model(config: Config, precision: torch.dtype) -> VerificationRecord:
    """Compare the model in int8 with itself in float32, and the time of single sentences with that in `precision`."""
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    model, tokenizer = load_model(checkpoint, from_yaml(checkpoint.config_text).model, CPU)
    search, sample = beam_search_of(config), read_sample(config)
    exact, rounded = (kind([model], tokenizer, search, CPU) for kind in (TorchEngine, Int8Engine))
    verification = verify(exact, rounded, sample.lines)
    accept(verification, "int8")
    bleu = make_bleu(bleu_tokenizer(config.data.target_lang, config.evaluation.bleu_tokenizer))
    quality = compare_quality(verification.ours, verification.theirs, sample.references, bleu)
    speedup = compare_speed(TorchEngine([model], tokenizer, search, CPU, precision), rounded, sample.lines)
    return record_of(verification, quality, speedup, "int8")
