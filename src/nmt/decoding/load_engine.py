"""Load a model that translates: a checkpoint, an ensemble of checkpoints, or what another engine has."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from nmt.compute.machine import Machine, prepare_machine
from nmt.config import registry
from nmt.config.decoding import DecodingConfig
from nmt.config.folders import expanded
from nmt.config.registry import imported
from nmt.config.saved import from_yaml
from nmt.config.tree import Config, RuntimeConfig
from nmt.decoding.loaded_model import LoadedModel
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.model.backends.chosen import choose
from nmt.model.cpu.prepared_weights import IN_C
from nmt.runs import checkpoint as checkpoints
from nmt.runs.checkpoint import Checkpoint, CheckpointRecord
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import AVERAGED, EXPORT_RECORD, META, RunLayout
from nmt.text.tokenizer import Tokenizer

LOAD_EXPORT = "nmt.export.loading:load_export"


def load(
    path: str | PathLike[str],
    *,
    checkpoint: str | int = AVERAGED,
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    kernels: bool = True,
) -> LoadedModel:
    """Load a model to translate with; it searches with the settings of its run (`decoding.*`) unless told otherwise.

    Settings that name files, such as `decoding.terms`, are not taken from the model, which may come from a stranger.

    Args:
        path: the folder of a run, of a checkpoint, or of a model for another engine.
        checkpoint: checkpoint of a run: averaged, best, last or a step.
        device: auto (a GPU if there is one), cpu, cuda or mps.
        precision: auto (as in `runtime.precision`), fp32, bf16 or fp16. Other engines have their own.
        threads: CPU threads; 0 is one per core.
        kernels: whether to translate with the operations of this package (see `runtime.kernels`).
    """
    folder = expanded(str(path))
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name that of a run, of a checkpoint or of another model")
    machine = prepare_machine(RuntimeConfig(device=device, precision=precision, threads=threads))
    _use_kernels(machine, wanted=kernels)
    if (folder / META).is_file():
        return _load_checkpoints([folder], machine)
    if (folder / EXPORT_RECORD).is_file():
        loaded: LoadedModel = imported(LOAD_EXPORT)(folder, machine)
        return loaded
    return _load_checkpoints([_checkpoint_in(folder, str(checkpoint))], machine)


def _checkpoint_in(folder: Path, name: str) -> Path:
    """Return the folder of a checkpoint of a run."""
    if not RunLayout(folder).checkpoints.is_dir():
        runs = sorted(each.name for each in folder.iterdir() if RunLayout(each).checkpoints.is_dir())
        hint = f"; it has the runs {', '.join(runs)}" if runs else ""
        raise UserError(f"{folder} is neither a run nor a checkpoint nor another model{hint}")
    return resolve(folder, name)


def load_engine(config: Config, machine: Machine) -> LoadedModel:
    """Load the model that the settings name, for the engine that they name."""
    loaded: LoadedModel = registry.load("engine", config.engine)(config, machine)
    return loaded


def load_checkpoints(config: Config, machine: Machine, engine: type[TorchEngine] = TorchEngine) -> LoadedModel:
    """Load what the settings `checkpoint` and `decoding.ensemble` name, for the engine or one derived from it."""
    _use_kernels(machine, wanted=config.runtime.kernels)
    folders = [resolve(config.run_folder, name) for name in (config.checkpoint, *config.decoding.ensemble)]
    return _load_checkpoints(folders, machine, config.decoding, config.seed, engine)


def _use_kernels(machine: Machine, *, wanted: bool) -> None:
    """Translate with the kernels of this package, or without, if there are any for this machine."""
    if machine.device.type != "cpu" or machine.precision in IN_C:
        choose(machine, kernels=wanted, trains=False)


def check_languages(loaded: LoadedModel, config: Config) -> None:
    """Raise an error if the model was trained for other languages than the settings name."""
    model, settings = "-".join(loaded.languages), f"{config.data.source_lang}-{config.data.target_lang}"
    if model != settings:
        raise UserError(
            f"{loaded.path} translates {model}, but the settings say {settings}: "
            "use the experiment= that it was trained with, or set data.source_lang and data.target_lang"
        )


def _load_checkpoints(
    folders: Sequence[Path],
    machine: Machine,
    search: DecodingConfig | None = None,
    seed: int = 1,
    engine: type[TorchEngine] = TorchEngine,
) -> LoadedModel:
    """Load one checkpoint, or several as an ensemble; without `search`, with the search of the first one's run."""
    members = [checkpoints.load(folder) for folder in folders]
    settings = [from_yaml(member.config_text) for member in members]
    loaded = [load_model(member, each.model, machine.device) for member, each in zip(members, settings, strict=True)]
    models, tokenizers = [model for model, _ in loaded], [tokenizer for _, tokenizer in loaded]
    _check_members(members, tokenizers, settings)
    search = search or replace(settings[0].decoding.naming_no_file, ensemble=[])
    first, *others = (CheckpointRecord.of(member.meta) for member in members)
    return LoadedModel(
        engine(models, tokenizers[0], search, *machine, seed=seed, guided=settings[0].training.guided_weight > 0),
        members[0].path,
        (settings[0].data.source_lang, settings[0].data.target_lang),
        replace(first, ensemble=tuple(others)),
    )


def _check_members(members: Sequence[Checkpoint], tokenizers: Sequence[Tokenizer], settings: Sequence[Config]) -> None:
    """Refuse members of an ensemble with another vocabulary, or for other languages, than the first."""
    languages = [f"{each.data.source_lang}-{each.data.target_lang}" for each in settings]
    for member, tokenizer, direction in zip(members, tokenizers, languages, strict=True):
        if tokenizer.checksum != tokenizers[0].checksum:
            raise UserError(
                f"{member.path} has another tokenizer than {members[0].path}: "
                "an ensemble needs models with the same vocabulary"
            )
        if direction != languages[0]:
            raise UserError(
                f"{member.path} translates {direction}, but {members[0].path} {languages[0]}: "
                "an ensemble needs models for the same languages"
            )
