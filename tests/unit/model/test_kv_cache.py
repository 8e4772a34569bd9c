"""Decoding a token at a time, while rows change places and leave, compared with full forward passes in float64."""

from dataclasses import replace

import pytest
import torch

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.model.build import build_model
from nmt.model.packed import Packed

VOCABULARY = 11
SOURCES = [[5, 6, 7, 3], [8], [9, 10, 4, 5, 6, 7], [4, 4]]
PAPER = ModelConfig(layers=2, d_model=16, d_ff=24, heads=4, dropout=0.0, max_positions=32)
CONFIGS = {
    **{name: replace(PAPER, positions=name, kv_heads=2) for name in CHOICES["model.positions"]},
    "wide values": replace(PAPER, d_v=6, norm_placement="pre"),
    **{f"decoder-only {name}": replace(PAPER, architecture="decoder_only", positions=name, d_k=6, kv_heads=2)
       for name in CHOICES["model.positions"] if name != "learned"},
}  # fmt: skip


@pytest.mark.parametrize(("copies", "rows"), [(1, 3), (5, 1), (1, None)], ids=["beam", "samples", "as many"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_each_row_attends_to_its_own_tokens_and_source(config: ModelConfig, copies: int, rows: int | None) -> None:
    """In some steps up to two sentences leave, where the others have more rows instead if `rows` is None."""
    torch.manual_seed(1)
    model, random = build_model(config, VOCABULARY, VOCABULARY).double(), torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    model.eval()
    state = model.start(Packed.from_sentences(SOURCES))
    state.repeat(copies)
    sources = [source for source in SOURCES for _ in range(copies)]
    prefixes = [[list[int]()] for _ in sources]  # of each row of each sentence
    for step in range(12):
        firsts = [sum(map(len, prefixes[:place])) for place in range(len(prefixes))]
        kept = list(range(len(sources)))
        for _ in range(2 if step % 4 == 3 and len(sources) > 2 else 0):
            kept.pop(int(torch.randint(len(kept), (), generator=random)))
        count = (rows if step else 1) or len(SOURCES) // len(kept)
        parents, extended = list[int](), []
        for place in kept:
            chosen = torch.randint(len(prefixes[place]), (count,), generator=random).tolist()
            parents += [firsts[place] + row for row in chosen]
            tokens = torch.randint(VOCABULARY, (len(chosen),), generator=random).tolist()
            extended.append([[*prefixes[place][row], token] for row, token in zip(chosen, tokens, strict=True)])
        sources, prefixes = [sources[place] for place in kept], extended
        flat = [prefix for block in prefixes for prefix in block]
        with torch.no_grad():
            scores = model.advance(torch.tensor([prefix[-1] for prefix in flat]), torch.tensor(parents), state)
            source = Packed.from_sentences([each for each in sources for _ in prefixes[0]])
            full = model.logits(model(source, Packed.from_sentences(flat))).unflatten(0, (len(flat), -1))
        torch.testing.assert_close(scores, full[:, -1], rtol=1e-9, atol=1e-9)
