"""Translate with a model that `nmt export` wrote for CTranslate2, to score exactly the model that will be used."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from nmt.config.decoding import DecodingConfig
from nmt.decoding.batches import MAX_SOURCE_TOKENS, DecodingPlan, serial_plan
from nmt.decoding.beam import Hypothesis, length_penalty
from nmt.decoding.constraints import Constraints
from nmt.decoding.engine import Engine
from nmt.errors import UserError
from nmt.packages import import_optional
from nmt.text.special import BOS, PAD
from nmt.text.tokenizer import Tokenizer

MAX_CPU_SENTENCES = 32
"""The largest batch on a CPU: with more sentences, CTranslate2 translates fewer per second in int8."""
PATIENCE = 2
"""CTranslate2 searches until this number times `beam` hypotheses are finished. With 1, the improbable endings of a
confident model fill the beam before its translation ends."""
NEUTRAL_LENGTH_PENALTY = 1e-9
"""Changes no score, but CTranslate2 then searches until enough hypotheses are finished, as it does with any penalty."""


class CTranslate2Engine(Engine):
    """Translates with a model in CTranslate2's format and the tokenizer in the same folder."""

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        config: DecodingConfig,
        device: torch.device,
        threads: int,
        *,
        seed: int = 1,
        max_positions: int = MAX_SOURCE_TOKENS,
    ) -> None:
        """Load the model in `folder`, which accepts sentences of at most `max_positions` tokens, onto `device`."""
        ctranslate2 = import_optional("ctranslate2")
        tokenizer = Tokenizer.load(folder, "export the model again")
        super().__init__(tokenizer, config, min(max_positions, MAX_SOURCE_TOKENS), max_positions)
        self.source_pieces, self.target_pieces = tokenizer.vocabularies
        self._ids = {piece: index for index, piece in enumerate(self.target_pieces)}
        self.device = device if device.type == "cuda" else torch.device("cpu")  # it has no code for Apple's GPU
        try:
            self.model: Any = ctranslate2.Translator(
                str(folder),
                device=self.device.type,
                device_index=self.device.index or 0,
                intra_threads=threads,
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"CTranslate2 cannot load {folder} ({error}): run `make export` again") from error
        self._set_seed = ctranslate2.set_random_seed
        self.prepare_search(seed)

    def prepare_search(self, seed: int) -> None:
        """See `Engine.prepare_search`. All engines of a process draw their samples from the same random numbers."""
        super().prepare_search(seed)
        self._set_seed(seed % (2**32 - 1))  # it takes no larger one, and with this one draws other samples each time

    def plan(self, lengths: Sequence[int]) -> DecodingPlan:
        """See `Engine.plan`."""
        max_sentences = MAX_CPU_SENTENCES if self.device.type == "cpu" else sys.maxsize
        return serial_plan(lengths, self.config.batch_tokens, max_sentences)

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        self._check(constraints)
        config: Any = self.config
        # The longest translation of each sentence, without EOS; CTranslate2 takes only one limit for the whole batch.
        limits = [
            min(len(source) + len(constraint.beginning) + self.config.extra_length, self.max_target_tokens) - 1
            for source, constraint in zip(sources, constraints, strict=True)
        ]
        beginnings = [_pieces(self.target_pieces, each.beginning) for each in constraints]
        found = self.model.translate_batch(
            [_pieces(self.source_pieces, source[:-1]) for source in sources],
            target_prefix=beginnings if any(beginnings) else None,
            max_decoding_length=max(limits),
            min_decoding_length=config.min_length,
            no_repeat_ngram_size=config.no_repeat_ngram,
            max_input_length=0,
            return_scores=True,
            suppress_sequences=[[self.target_pieces[piece]] for piece in (PAD, BOS)],
            **self._search_options(),
        )
        return [self._ranked(each.hypotheses, each.scores, limit) for each, limit in zip(found, limits, strict=True)]

    def label_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """See `Engine.label_scores`."""
        found = self.model.score_batch(
            [_pieces(self.source_pieces, source[:-1]) for source in sources],
            [_pieces(self.target_pieces, target[:-1]) for target in targets],
            max_input_length=0,
        )
        return [list(each.log_probs) for each in found]

    def _check(self, constraints: list[Constraints]) -> None:
        """Refuse constraints that CTranslate2 cannot keep."""
        if any(each.terms for each in constraints):
            raise UserError("engine=ctranslate2 cannot require terms: use engine=torch")

    def _search_options(self) -> dict[str, Any]:
        """Return the arguments of `translate_batch` for beam search or sampling."""
        config: Any = self.config.search
        if config.strategy == "sample":
            return {
                "beam_size": 1,
                "num_hypotheses": config.nbest,
                "sampling_topk": config.top_k,
                "sampling_topp": config.top_p,
                "sampling_temperature": config.temperature,
            }
        return {
            "beam_size": config.beam,
            "num_hypotheses": config.beam,
            "length_penalty": NEUTRAL_LENGTH_PENALTY,
            "patience": PATIENCE,
        }

    def _ranked(self, hypotheses: list[list[str]], log_probabilities: list[float], limit: int) -> list[Hypothesis]:
        """Return the best hypotheses by GNMT's length penalty, cut to at most `limit` tokens."""
        found = [
            Hypothesis(
                [self._ids[piece] for piece in pieces[:limit]],
                total / length_penalty(len(pieces) + 1, self.config.alpha),
                total,
            )
            for pieces, total in zip(hypotheses, log_probabilities, strict=True)
        ]
        return sorted(found, key=lambda each: -each.score)[: self.config.search.nbest]


def _pieces(pieces: Sequence[str], ids: Sequence[int]) -> list[str]:
    return [pieces[index] for index in ids]
