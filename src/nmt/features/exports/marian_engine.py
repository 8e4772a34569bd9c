"""Translate and score with Hugging Face's own code, to verify an export for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from nmt.compute.packages import import_optional
from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import Hypothesis
from nmt.decoding.constraints import UNCONSTRAINED, Constraints
from nmt.decoding.engine import Engine
from nmt.errors import UserError
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import Tokenizer

POSITIONS = 1536
"""The length of the longest sentence, in word pieces. Marian computes its sinusoids whenever it is loaded."""


class MarianEngine(Engine):
    """A model in Marian's format and its tokenizer."""

    name = "huggingface"

    def __init__(self, folder: Path, tokenizer: Tokenizer, config: DecodingConfig) -> None:
        """Load the model from `folder`; our own tokenizer splits text, see `check_tokenizer`."""
        super().__init__(tokenizer, config, max_target_tokens=POSITIONS)
        self.device = torch.device("cpu")
        transformers = import_optional("transformers")
        transformers.logging.disable_progress_bar()
        transformers.logging.set_verbosity_error()
        self.model: Any = transformers.MarianMTModel.from_pretrained(folder).eval()

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """See `Engine.search`; searches as the exported generation_config.json says and returns no scores."""
        assert all(each == UNCONSTRAINED for each in constraints)
        ids, mask = padded(sources)
        with torch.no_grad():
            found = self.model.generate(input_ids=ids, attention_mask=mask)
        rows = [[piece for piece in row if piece not in (PAD, BOS, EOS)] for row in found.tolist()]
        return [[Hypothesis(row, 0.0, 0.0)] for row in rows]

    def label_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """See `Engine.label_scores`."""
        ids, mask = padded(sources)
        labels, _ = padded(targets)
        begun, _ = padded([[BOS, *target[:-1]] for target in targets])
        with torch.no_grad():
            logits = self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=begun).logits
        scores = logits.float().log_softmax(-1).gather(2, labels[:, :, None])[:, :, 0]
        return [row[: len(target)].tolist() for row, target in zip(scores, targets, strict=True)]


def check_tokenizer(folder: Path, tokenizer: Tokenizer, lines: Sequence[str]) -> None:
    """Check that `AutoTokenizer` splits and joins text as our tokenizer does."""
    theirs = import_optional("transformers").AutoTokenizer.from_pretrained(folder)
    for line, ids in zip(lines, tokenizer.encode_source(lines), strict=True):
        found = theirs(line).input_ids
        if found != [*ids, EOS]:
            raise UserError(f"the export was deleted: Hugging Face's tokenizer does not split {line!r} as ours does")
    for line, ids in zip(lines, tokenizer.encode_target(lines), strict=True):
        known = [piece for piece in ids if piece != UNK]  # Hugging Face drops unknown pieces
        if theirs.decode([*known, EOS], skip_special_tokens=True) != tokenizer.decode(known).strip():
            raise UserError(f"the export was deleted: Hugging Face's tokenizer does not join {line!r} as ours does")


def padded(sentences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sentences padded to one length (B, L), and a mask (B, L) that is 0 on padding."""
    longest = max(map(len, sentences))
    ids = torch.tensor([[*sentence, *[PAD] * (longest - len(sentence))] for sentence in sentences])
    lengths = torch.tensor([[len(sentence)] for sentence in sentences])
    return ids, (torch.arange(longest) < lengths).long()
