"""COMET as a utility of minimum Bayes risk."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.risk import Utility
from nmt.errors import UserError
from nmt.evaluation.comet_model import BATCH_SENTENCES, load


def by_comet(config: DecodingConfig, device: torch.device) -> Utility:
    """Return COMET with the model that the settings name."""
    return comet_utility(config.comet, "decoding.comet", device)


def comet_utility(name: str, setting: str, device: torch.device) -> Utility:
    """Return a function that compares all pairs of translations (N, N) of a source on a device, as percentages.

    Each sentence is encoded once, and only the small network on top compares pairs. Models that read a translation
    together with its reference cannot be used.
    """
    model, _, checkpoint = load(name, setting)
    from comet.models import RegressionMetric  # noqa: PLC0415 - slow to import, and optional

    if type(model) is not RegressionMetric:  # its subclasses have no references
        raise UserError(
            f"{setting}={name}: {checkpoint} is a {type(model).__name__}, which cannot compare pairs of translations "
            "quickly: use a model of the kind of Unbabel/wmt22-comet-da"
        )

    @torch.no_grad()
    def compare(translations: Sequence[str], source: str) -> NDArray[np.float64]:
        model.to(device)  # `predict` of the metric may have moved it
        encoded = _encode(model, [source, *translations], device)
        first, references = encoded[:1].expand(len(translations), -1), encoded[1:]
        scores = [model.estimate(first, each.expand_as(references), references).score for each in references]
        return 100 * torch.stack(scores).cpu().double().numpy()

    return compare


def _encode(model: Any, sentences: Sequence[str], device: torch.device) -> Tensor:
    """Return the vectors (N, d) of sentences."""
    vectors = []
    for first in range(0, len(sentences), BATCH_SENTENCES):
        batch = model.encoder.prepare_sample(sentences[first : first + BATCH_SENTENCES])
        ids, mask = batch["input_ids"].to(device), batch["attention_mask"].to(device)
        vectors.append(model.get_sentence_embedding(ids, mask))
    return torch.cat(vectors)
