"""Make small models with random weights, and tokenizers, for tests."""

import io
from collections.abc import Sequence
from typing import Any

import sentencepiece
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from nmt.config.model import ModelConfig
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

LINES = [
    "the small cat sees a dog",
    "a dog",
    "the dog that the cat sees is not small and it sees the cat",
    "cats see dogs",
    "it is a very small dog",
]


def make_tokenizer(joint: bool = True, tags: Sequence[str] = ()) -> Tokenizer:
    """Return a tokenizer of few pieces and the tags; unless it is joint, the target vocabulary is smaller."""
    source = learn(LINES * 5, 60, user_defined_symbols=[SPACE_MARK + tag for tag in tags])
    return Tokenizer(source) if joint else Tokenizer(source, learn(LINES * 5, 52))


def learn(lines: Sequence[str], size: int, kind: str = "bpe", **more: Any) -> bytes:
    """Return a SentencePiece model of at most this many pieces."""
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=content, model_type=kind, vocab_size=size, minloglevel=2,
        unk_id=UNK, pad_id=PAD, bos_id=BOS, eos_id=EOS, hard_vocab_limit=False, **more,
    )  # fmt: skip
    return content.getvalue()


def make_model(tokenizer: Tokenizer, seed: int = 7, **options: object) -> TranslationModel:
    """Return a model with random weights, also in norms and biases."""
    torch.manual_seed(seed)
    config = ModelConfig(**{"layers": 2, "d_model": 32, "d_ff": 48, "heads": 4, **options})  # type: ignore[arg-type]
    model = build_model(config, tokenizer.source_size, tokenizer.target_size).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.normal_(mean=float(name.endswith("norm.weight")), std=0.3)
        model.projection[EOS].mul_(1.3)
        if config.norm == "layer":
            _make_improbable(model, [PAD, BOS])
    return model


def teach(model: TranslationModel, tokenizer: Tokenizer, steps: int = 60) -> TranslationModel:
    """Train a model to copy the lines, so that rounding its weights changes little; return it."""
    ids = tokenizer.encode_source(LINES)
    source = Packed.from_sentences([[*each, EOS] for each in ids])
    prefix = Packed.from_sentences([[BOS, *each] for each in ids])
    labels = torch.tensor([token for each in ids for token in (*each, EOS)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model.logits(model(source, prefix)), labels).backward()
        optimizer.step()
    return model


def _make_improbable(model: TranslationModel, pieces: list[int]) -> None:
    """Make pieces as improbable as training makes them.

    No engine generates PAD or BOS, but engines differ in whether the softmax includes them.
    """
    norms = [module for name, module in model.named_modules() if name.startswith("decoder") and name.endswith("norm")]
    last = next(norm for norm in norms[::-1] if isinstance(norm, torch.nn.LayerNorm))
    last.weight[0], last.bias[0] = 0, 10
    model.projection[:, 0] = 0
    model.projection[pieces, 0] = -3


def log_probabilities(model: TranslationModel, source: list[int], target: list[int]) -> Tensor:
    """Return the log-probabilities (n + 1,) of the target's pieces and its end mark, from one forward pass."""
    return next_log_probabilities(model, source, target).gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]


def next_log_probabilities(model: TranslationModel, source: list[int], target: list[int]) -> Tensor:
    """Return the log-probabilities (n + 1, V) of each next piece, from one forward pass over the whole target."""
    with torch.no_grad():
        hidden = model(Packed.from_sentences([[*source, EOS]]), Packed.from_sentences([[BOS, *target]]))
        return model.logits(hidden).log_softmax(-1)
