"""Load a model that translates: a checkpoint, an ensemble of checkpoints, or what another engine has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from nmt.compute.machine import Machine, prepare_machine
from nmt.config import registry
from nmt.config.checks import within
from nmt.config.decoding import DecodingConfig
from nmt.config.folders import expanded
from nmt.config.registry import imported
from nmt.config.tree import Config, RuntimeConfig
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.decoding.translation import Likelihood, Request, Translation, WordProbability, check_is_text
from nmt.errors import UserError, nearest
from nmt.model.backends.chosen import choose
from nmt.model.translator import IN_C
from nmt.runs import checkpoint as checkpoints
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import AVERAGED, EXPORT_RECORD, META, RunLayout

if TYPE_CHECKING:
    from nmt.decoding.attention import Attention

LOAD_EXPORT = "nmt.export.ctranslate2_engine:load_export"
MAX_SEED = 2**63 - 1
MAX_NEXT_WORDS = 1000


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that translates. Its methods change nothing in it, so any number of threads may call them."""

    engine: Engine
    path: Path
    """Folder of the checkpoint, or of the model for another engine."""
    languages: tuple[str, str]
    """Source and target language."""
    checkpoint: CheckpointRecord
    """The checkpoint that was loaded, or that the model was made from."""

    def translate(
        self,
        lines: Iterable[str | Request],
        *,
        token_scores: bool = False,
        seed: int = 1,
        **options: Any,
    ) -> list[Translation]:
        """Translate lines of text, and return the translations in the same order.

        Args:
            lines: the text, a sentence per line. An empty line stays empty; a line that is too long is truncated, with
                a warning. A `Request` is a line with constraints on its translation.
            token_scores: whether candidates have their tokens with log-probabilities, which takes an extra pass.
            seed: seed of the samples, if strategy is "sample".
            options: settings of the search (`decoding.<name>`) that differ from those that the model was loaded with;
                not `ensemble`, whose models would have to be loaded.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines, not a single text: translate([text])")
        within(at_least=0, at_most=MAX_SEED)("seed", index(seed))
        engine = self.engine.with_search(self._search(options), seed)
        return list(engine.translate(lines, token_scores=token_scores))

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Likelihood]:
        """Return how probable the second text of each pair is as the translation of the first.

        Only the beginning of a sentence that is too long counts.
        """
        sources, targets = list[str](), list[str]()
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"{pair!r:.80} is no pair of texts: score([(source, target)])")
            for texts, text in zip((sources, targets), pair, strict=True):
                check_is_text(text)
                texts.append(text)
        return self.engine.score(sources, targets)

    def attention(self, source: str, target: str) -> "Attention":
        """Return the attention weights of a sentence and its translation. Of an ensemble, the first model attends.

        Only the beginning of a sentence that is too long counts.
        """
        from nmt.decoding.attention import compute_attention  # noqa: PLC0415 - seldom used

        engine = self._torch_engine("the attention")
        limits = engine.max_source_tokens, engine.max_target_tokens
        return compute_attention(engine.models[0], engine.tokenizer, source, target, limits)

    def next_words(self, source: str, beginning: str = "", *, count: int = 8) -> list[WordProbability]:
        """Return the words that are most likely to follow the beginning of a translation, most likely first.

        Punctuation belongs to the word before it. The probabilities of all words and of the end add up to 1.
        """
        from nmt.decoding.next_words import likely_words  # noqa: PLC0415 - seldom used

        engine = self._torch_engine("the next words")
        within(at_least=1, at_most=MAX_NEXT_WORDS)("count", index(count))
        return likely_words(engine, source, beginning, count) if source.strip() else []

    def _torch_engine(self, wanted: str) -> TorchEngine:
        if not isinstance(self.engine, TorchEngine):
            raise UserError(f"engine={self.engine.name} does not show {wanted} of {self.path}: load the run itself")
        return self.engine

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        raise TypeError("a loaded model cannot be copied: load it in each process, and share it between threads")

    def _search(self, options: Mapping[str, Any]) -> DecodingConfig:
        """Return the settings of a search: those of the engine, except for `options`."""
        known = {field.name for field in fields(DecodingConfig)} - {"ensemble"}
        for name in options:
            if name not in known:
                raise TypeError(f"translate has no option {name}; {nearest(name, known)}")
        plain = {name: each.item() if hasattr(each, "item") else each for name, each in options.items()}  # from NumPy
        return replace(self.engine.config, **plain)


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
    use_kernels(machine, wanted=kernels)
    if (folder / META).is_file():
        return _load_checkpoints([folder], machine)
    if (folder / EXPORT_RECORD).is_file():
        loaded: LoadedModel = imported(LOAD_EXPORT)(folder, machine)
        return loaded
    if not RunLayout(folder).checkpoints.is_dir():
        raise UserError(f"{folder} is neither a run nor a checkpoint nor another model: name one of these")
    return _load_checkpoints([resolve(folder, str(checkpoint))], machine)


def load_engine(config: Config, machine: Machine) -> LoadedModel:
    """Load the model that the settings name, for the engine that they name."""
    loaded: LoadedModel = registry.load("engine", config.engine)(config, machine)
    return loaded


def load_in_int8(config: Config, machine: Machine) -> LoadedModel:
    """Load the same with its weights in int8, for a CPU."""
    return load_checkpoints(config, machine._replace(precision=torch.int8))


def load_checkpoints(config: Config, machine: Machine) -> LoadedModel:
    """Load what the settings `checkpoint` and `decoding.ensemble` name."""
    use_kernels(machine, wanted=config.runtime.kernels)
    folders = [resolve(config.run_folder, name) for name in (config.checkpoint, *config.decoding.ensemble)]
    graphs = config.runtime.cuda_graphs is not False
    return _load_checkpoints(folders, machine, config.decoding, config.seed, graphs=graphs)


def use_kernels(machine: Machine, *, wanted: bool) -> None:
    """Translate with the kernels of this package, or without, if there are any for this machine."""
    if machine.device.type != "cpu" or machine.precision in IN_C:
        exact = machine._replace(precision=torch.float32) if machine.precision == torch.int8 else machine
        choose(exact, kernels=wanted, trains=False)


def check_languages(loaded: LoadedModel, config: Config) -> None:
    """Raise an error if the model was trained for other languages than the settings name."""
    model, settings = "-".join(loaded.languages), "-".join(config.data.languages)
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
    *,
    graphs: bool = True,
) -> LoadedModel:
    """Load one checkpoint, or several as an ensemble; without `search`, with the search of the first one's run."""
    members = [checkpoints.load(folder) for folder in folders]
    settings = [member.config for member in members]
    loaded = [load_model(member, each.model, machine.device) for member, each in zip(members, settings, strict=True)]
    models, (tokenizer, *_) = zip(*loaded, strict=True)
    languages = [each.data.languages for each in settings]
    for member, (_, other), pair in zip(members, loaded, languages, strict=True):
        if (other.checksum, pair) != (tokenizer.checksum, languages[0]):
            raise UserError(
                f"{member.path} has another tokenizer or other languages than {members[0].path}: "
                "an ensemble needs models with the same vocabulary"
            )
    search = search or replace(settings[0].decoding.naming_no_file, ensemble=[])
    first, *others = (CheckpointRecord.of(member.meta) for member in members)
    guided = settings[0].training.guided_weight > 0
    engine = TorchEngine(models, tokenizer, search, *machine, seed=seed, guided=guided, graphs=graphs)
    return LoadedModel(engine, members[0].path, languages[0], replace(first, ensemble=tuple(others)))
