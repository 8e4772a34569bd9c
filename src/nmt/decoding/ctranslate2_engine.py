"""Translates with what `nmt export` made for CTranslate2: what will be used elsewhere is scored as it is."""

from pathlib import Path
from typing import Any

import torch

from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import Hypothesis, length_penalty
from nmt.decoding.engine import MAX_SOURCE_TOKENS, Engine, Likelihood
from nmt.errors import UserError
from nmt.text.special import BOS, PAD
from nmt.text.tokenizer import Tokenizer

ALMOST_NONE = 1e-9
"""A length penalty that changes no score but makes CTranslate2 go on until `beam` hypotheses are finished."""


class CTranslate2Engine(Engine):
    """A model in CTranslate2's format, with the tokenizer beside it."""

    def __init__(
        self,
        folder: Path,
        config: DecodingConfig,
        device: torch.device,
        threads: int,
        *,
        seed: int = 1,
        longest: int = MAX_SOURCE_TOKENS,
    ) -> None:
        """Load the model in `folder` onto `device`; `longest` is the number of positions that it knows."""
        try:
            import ctranslate2  # noqa: PLC0415 - only those who ask for it need it
        except ModuleNotFoundError as error:
            raise UserError(
                "this needs the package ctranslate2: .venv/bin/python -m pip install ctranslate2"
            ) from error
        tokenizer = Tokenizer.load(folder)
        super().__init__(tokenizer, config, min(longest, MAX_SOURCE_TOKENS), longest)
        self.source_pieces, self.target_pieces = tokenizer.vocabularies
        self._ids = {piece: index for index, piece in enumerate(self.target_pieces)}
        try:
            self.model: Any = ctranslate2.Translator(
                str(folder), device=device.type, device_index=device.index or 0, intra_threads=threads
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"CTranslate2 cannot load {folder} ({error}): run `make export` again") from error
        ctranslate2.set_random_seed(seed)

    def search(self, sources: list[list[int]], prefixes: list[list[int]] | None) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        # Each translation's most word pieces, the end mark left out; CTranslate2 itself knows one limit for all.
        begun = [len(prefix) for prefix in prefixes] if prefixes else [0] * len(sources)
        limits = [
            min(len(source) + first + self.config.extra_length, self.longest_target) - 1
            for source, first in zip(sources, begun, strict=True)
        ]
        found = self.model.translate_batch(
            [_words(self.source_pieces, source[:-1]) for source in sources],
            target_prefix=None if prefixes is None else [_words(self.target_pieces, prefix) for prefix in prefixes],
            max_decoding_length=max(limits),
            min_decoding_length=0,
            max_input_length=0,
            return_scores=True,
            suppress_sequences=[[self.target_pieces[piece]] for piece in (PAD, BOS)],
            **self._how(),
        )
        return [self._ranked(each.hypotheses, each.scores, limit) for each, limit in zip(found, limits, strict=True)]

    def likelihoods(self, sources: list[list[int]], targets: list[list[int]]) -> list[Likelihood]:
        """See `Engine.likelihoods`."""
        found = self.model.score_batch(
            [_words(self.source_pieces, source[:-1]) for source in sources],
            [_words(self.target_pieces, target[:-1]) for target in targets],
            max_input_length=0,
        )
        return [Likelihood(sum(each.log_probs), len(each.log_probs)) for each in found]

    def _how(self) -> dict[str, Any]:
        config = self.config
        if config.strategy == "sample":
            return {
                "beam_size": 1,
                "num_hypotheses": config.nbest,
                "sampling_topk": config.top_k,
                "sampling_topp": config.top_p,
                "sampling_temperature": config.temperature,
            }
        return {"beam_size": config.beam, "num_hypotheses": config.beam, "length_penalty": ALMOST_NONE}

    def _ranked(self, hypotheses: list[list[str]], log_probabilities: list[float], limit: int) -> list[Hypothesis]:
        """The best of what it found, by our own length penalty."""
        found = [
            Hypothesis(
                [self._ids[piece] for piece in pieces[:limit]],
                total / length_penalty(len(pieces) + 1, self.config.alpha),
                total,
            )
            for pieces, total in zip(hypotheses, log_probabilities, strict=True)
        ]
        return sorted(found, key=lambda each: -each.score)[: self.config.nbest]


def _words(pieces: list[str], ids: list[int]) -> list[str]:
    return [pieces[index] for index in ids]
