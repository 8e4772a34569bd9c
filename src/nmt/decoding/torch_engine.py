"""Lines in, translations out: what validation, evaluation and `nmt translate` all decode with."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.compute.forks import can_fork, run_tasks_in_forks
from nmt.compute.machine import is_out_of_memory
from nmt.compute.threads import concurrent_workers, run_tasks_in_threads
from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.beam import Hypothesis, beam_search, ensemble_scorers
from nmt.decoding.engine import MAX_SOURCE_TOKENS, Engine, Likelihood, Search, Take, batches_by_length
from nmt.decoding.sampling import sample
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.model.cpu.prepared_weights import prepare_for_cpu
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.runs.checkpoints import Checkpoint, check_weights
from nmt.text.special import BOS
from nmt.text.tokenizer import Tokenizer

ROWS = 512
"""Tokens whose scores of all words are held at once where translations are scored."""
MAX_CPU_HYPOTHESES = 1280
"""Hypotheses that a CPU works on at once: more take more memory, and no less time each."""

MAX_FORK_HYPOTHESES = 80
"""Hypotheses so few that much of a step's time is Python's, at whose lock threads would take turns."""
MIN_SENTENCES_PER_THREAD = 4
"""Fewer are not worth a thread of their own."""


class TorchEngine(Engine):
    """Translates with a model, or with several as an ensemble."""

    def __init__(
        self,
        models: Sequence[TranslationModel],
        tokenizer: Tokenizer,
        config: DecodingConfig,
        device: torch.device,
        precision: torch.dtype = torch.float32,
        *,
        seed: int = 1,
    ) -> None:
        """Take models, as they are now, that are on `device` already; `precision` is what they compute in."""
        known = [model.config.max_positions for model in models if model.config.positions == "learned"]
        super().__init__(tokenizer, config, min([MAX_SOURCE_TOKENS, *known]), min(known, default=sys.maxsize))
        self.models = [prepare_for_cpu(model, precision) for model in models] if device.type == "cpu" else models
        self.device = device
        self.precision = precision
        self.random = torch.Generator(device).manual_seed(seed)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Where the models are looked at: no dropout, no gradients, the chosen precision."""
        rounded = self.device.type != "cpu" and self.precision != torch.float32
        autocast = torch.autocast(self.device.type, self.precision, enabled=rounded)
        untraced = torch.inference_mode() if self.device.type == "cpu" else torch.no_grad()
        with _evaluating(self.models), untraced, autocast:
            try:
                yield
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                raise UserError(
                    "the device has too little memory to decode: lower decoding.batch_tokens or decoding.beam"
                ) from error

    def search(self, sources: list[list[int]], prefixes: list[list[int]] | None) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        source = Packed.from_sentences(sources).to(self.device)
        longest = source.lengths.to(torch.int64) + self.config.extra_length
        if prefixes:
            longest += torch.tensor([len(prefix) for prefix in prefixes], device=self.device)
        longest = longest.clamp(max=self.longest_target)
        with self.computing():
            step = ensemble_scorers([partial(model.advance, state=model.start(source)) for model in self.models])
            if self.config.strategy == "sample":
                return sample(step, longest, self.config, self.random, prefixes)
            return beam_search(
                step,
                longest,
                beam=self.config.beam,
                alpha=self.config.alpha,
                nbest=self.config.nbest,
                prefixes=prefixes,
            )

    def search_all(self, search: Search, take: Take, lengths: Sequence[int]) -> None:
        """See `Engine.search_all`; a CPU's cores take batches side by side, which share the word pieces of one."""
        if self.device.type != "cpu":
            super().search_all(search, take, lengths)
            return
        sentences, hypotheses = sum(map(bool, lengths)), self._hypotheses
        sampling = self.config.strategy == "sample"  # lots are drawn in one order
        at_once = 1 if sampling else concurrent_workers(sentences // MIN_SENTENCES_PER_THREAD)
        most = min(max(1, MAX_CPU_HYPOTHESES // hypotheses), math.ceil(sentences / at_once))
        batches = list(batches_by_length(lengths, max(1, self.config.batch_tokens // at_once), most))
        few = all(len(batch) * hypotheses <= MAX_FORK_HYPOTHESES for batch in batches)
        with _evaluating(self.models):  # here, for all threads: the first to end must not end it for the others
            if at_once > 1 and few and can_fork():
                run_tasks_in_forks(search, batches, min(torch.get_num_threads(), len(batches)), take)
            else:
                run_tasks_in_threads(lambda batch: take(batch, search(batch)), batches, at_once)

    @property
    def _hypotheses(self) -> int:
        """Rows of each sentence."""
        return self.config.nbest if self.config.strategy == "sample" else self.config.beam

    def likelihoods(self, sources: list[list[int]], targets: list[list[int]]) -> list[Likelihood]:
        """See `Engine.likelihoods`; under several models, as under the mean of their probabilities."""
        source = Packed.from_sentences(sources).to(self.device)
        target = Packed.from_sentences([[BOS, *pieces[:-1]] for pieces in targets]).to(self.device)
        labels = torch.tensor([piece for pieces in targets for piece in pieces], device=self.device)
        with self.computing():
            members = torch.stack([_label_scores(model, model(source, target), labels) for model in self.models])
            scores = members.logsumexp(0) - math.log(len(self.models))
        lengths = [len(pieces) for pieces in targets]
        return [Likelihood(sum(part), len(part)) for part in (each.tolist() for each in scores.split(lengths))]


def _label_scores(model: TranslationModel, output: Tensor, labels: Tensor) -> Tensor:
    """Log-probabilities (T,) of the labels; scores of whole vocabularies are held for a few rows at a time."""
    parts = [
        -F.cross_entropy(model.logits(rows).float(), some, reduction="none")
        for rows, some in zip(output.split(ROWS), labels.split(ROWS), strict=True)
    ]
    return torch.cat(parts)


def load_model(checkpoint: Checkpoint, config: ModelConfig, device: torch.device) -> tuple[TranslationModel, Tokenizer]:
    """The model and the tokenizer of a checkpoint, given the settings of the model that it holds."""
    tokenizer = Tokenizer.load(checkpoint.tokenizer_folder)
    if config.tie_embeddings and not tokenizer.joint:
        raise UserError(
            f"{checkpoint.path} has a vocabulary for each language, but its model shares one: "
            "its tokenizer is that of another run; put the right one back or use another checkpoint"
        )
    check_weights(_shapes(config, tokenizer, checkpoint), checkpoint.weights, checkpoint.path)
    model = build_model(config, tokenizer.source_size, tokenizer.target_size)
    model.load_state_dict(checkpoint.weights)
    return model.to(device).eval(), tokenizer


def _shapes(config: ModelConfig, tokenizer: Tokenizer, checkpoint: Checkpoint) -> dict[str, torch.Size]:
    """The parameters of a model that has not been built: its settings may ask for more than any memory holds."""
    try:
        if config.layers > len(checkpoint.weights):
            raise ValueError(f"{config.layers} layers")
        with torch.device("meta"):
            model = build_model(config, tokenizer.source_size, tokenizer.target_size)
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise UserError(
            f"{checkpoint.path / 'config.yaml'} describes a model that its weights cannot be of "
            f"({str(error).partition(chr(10))[0]}): restore it or use another checkpoint"
        ) from error
    return {name: weight.shape for name, weight in model.state_dict().items()}


@contextmanager
def _evaluating(models: Sequence[TranslationModel]) -> Iterator[None]:
    """Switch dropout off, and back on for a model that is being trained."""
    training = [model for model in models if model.training]
    for model in training:
        model.eval()
    try:
        yield
    finally:
        for model in training:
            model.train()
