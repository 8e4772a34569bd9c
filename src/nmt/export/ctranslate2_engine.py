"""Translate with a model that `nmt export` wrote for CTranslate2, to score exactly the model that will be used."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from nmt.compute.machine import Machine
from nmt.config.decoding import DecodingConfig
from nmt.config.saved import load_config
from nmt.config.tree import Config
from nmt.decoding.batches import MAX_SOURCE_TOKENS, DecodingPlan, batches_by_length
from nmt.decoding.beam import Hypothesis, length_penalty
from nmt.decoding.constraints import Constraints
from nmt.decoding.engine import Engine
from nmt.decoding.load import LoadedModel
from nmt.errors import UserError
from nmt.export.record import ExportRecord
from nmt.packages import import_optional
from nmt.runs.layout import EXPORT_RECORD, SETTINGS, export_folder
from nmt.text.special import BOS, PAD
from nmt.text.tokenizer import Tokenizer

MAX_CPU_SENTENCES = 32
"""The largest batch on a CPU: with more sentences, CTranslate2 translates fewer per second in int8."""
PATIENCE = 2
"""CTranslate2 searches until this number times `beam` hypotheses are finished. With 1, the improbable endings of a
confident model fill the beam before its translation ends."""
NEUTRAL_LENGTH_PENALTY = 1e-9
"""Changes no score, but CTranslate2 then searches until enough hypotheses are finished, as it does with any penalty."""


def load_named_export(config: Config, machine: Machine) -> LoadedModel:
    """Load the export that the settings name."""
    return load_export(export_folder(config), machine, config.decoding)


def load_export(folder: Path, machine: Machine, search: DecodingConfig | None = None) -> LoadedModel:
    """Load an export for CTranslate2; without `search`, with the beam search of the run that it was made from."""
    if not (folder / EXPORT_RECORD).is_file():
        raise UserError(f"there is no export in {folder}: run `make export` first (with the same ARGS)")
    record = ExportRecord.read(folder)
    if record.target != "ctranslate2":
        raise UserError(f"{folder} is an export for {record.target}: this needs one for ctranslate2, or the run itself")
    if search is None:
        saved = load_config(folder / SETTINGS).decoding
        beam = saved if saved.strategy == "beam" else saved.plain_beam
        search = replace(beam.naming_no_file, ensemble=[], alignments=False)
    engine = CTranslate2Engine(folder, search, machine.device, max_positions=record.positions)
    checkpoint = replace(record.checkpoint, export=str(folder), quantization=record.quantization)
    return LoadedModel(engine, folder, record.languages, checkpoint)


class CTranslate2Engine(Engine):
    """Translates with a model in CTranslate2's format and the tokenizer in the same folder."""

    name = "ctranslate2"

    def __init__(
        self, folder: Path, config: DecodingConfig, device: torch.device, *, max_positions: int = MAX_SOURCE_TOKENS
    ) -> None:
        """Load the model in `folder`, which accepts sentences of at most `max_positions` tokens, onto `device`."""
        library = import_optional("ctranslate2")
        super().__init__(Tokenizer.load(folder), config, min(max_positions, MAX_SOURCE_TOKENS), max_positions)
        self.device = device if device.type == "cuda" else torch.device("cpu")  # it has no code for Apple's GPU
        kind, index = self.device.type, self.device.index or 0
        try:
            self.model: Any = library.Translator(
                str(folder), device=kind, device_index=index, intra_threads=torch.get_num_threads()
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"CTranslate2 cannot load {folder} ({error}): run `make export` again") from error
        self.prepare_search(seed=1)

    def prepare_search(self, seed: int) -> None:
        """See `Engine.prepare_search`."""
        super().prepare_search(seed)
        if self.config.strategy != "beam":
            raise UserError("engine=ctranslate2 has beam search only: use engine=torch, or decoding.strategy=beam")

    def plan(self, lengths: Sequence[int]) -> DecodingPlan:
        """See `Engine.plan`."""
        max_sentences = MAX_CPU_SENTENCES if self.device.type == "cpu" else sys.maxsize
        return DecodingPlan(list(batches_by_length(lengths, self.config.batch_tokens, max_sentences)))

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        if any(each.terms for each in constraints):
            raise UserError("engine=ctranslate2 cannot require terms: use engine=torch")
        config, tokenizer = self.config, self.tokenizer
        # The longest translation of each sentence, without EOS; CTranslate2 takes only one limit for the whole batch.
        limits = [
            min(len(source) + len(constraint.beginning) + config.extra_length, self.max_target_tokens) - 1
            for source, constraint in zip(sources, constraints, strict=True)
        ]
        beginnings = [tokenizer.target_pieces(each.beginning) for each in constraints]
        found = self.model.translate_batch(
            [tokenizer.source_pieces(source[:-1]) for source in sources],
            target_prefix=beginnings if any(beginnings) else None,
            max_decoding_length=max(limits),
            no_repeat_ngram_size=config.no_repeat_ngram,
            max_input_length=0,
            return_scores=True,
            suppress_sequences=[[piece] for piece in tokenizer.target_pieces([PAD, BOS])],
            beam_size=config.beam,
            num_hypotheses=config.beam,
            length_penalty=NEUTRAL_LENGTH_PENALTY,
            patience=PATIENCE,
        )
        return [self._ranked(each.hypotheses, each.scores, limit) for each, limit in zip(found, limits, strict=True)]

    def label_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """See `Engine.label_scores`."""
        found = self.model.score_batch(
            [self.tokenizer.source_pieces(source[:-1]) for source in sources],
            [self.tokenizer.target_pieces(target[:-1]) for target in targets],
            max_input_length=0,
        )
        return [list(each.log_probs) for each in found]

    def _ranked(self, hypotheses: list[list[str]], log_probabilities: list[float], limit: int) -> list[Hypothesis]:
        """Return the best hypotheses by GNMT's length penalty, cut to at most `limit` tokens."""
        found = [
            Hypothesis(
                self.tokenizer.target_ids(pieces[:limit]),
                total / length_penalty(len(pieces) + 1, self.config.alpha),
                total,
            )
            for pieces, total in zip(hypotheses, log_probabilities, strict=True)
        ]
        return sorted(found, key=lambda each: -each.score)[: self.config.nbest]
