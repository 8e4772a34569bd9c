"""Copies of a sentence that share its source while they are decoded, compared with full forward passes in float64."""

from dataclasses import replace

import pytest
import torch

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.model.build import build_model
from nmt.model.packed import Packed

VOCABULARY = 11
SOURCES = [[5, 6, 7, 3], [8], [9, 10, 4, 5, 6, 7], [4, 4]]
COPIES = 5
PAPER = ModelConfig(layers=2, d_model=16, d_ff=24, heads=4, dropout=0.0)
CONFIGS = {
    **{name: replace(PAPER, positions=name, kv_heads=2) for name in CHOICES["model.positions"]},
    **{name: replace(PAPER, architecture=name) for name in CHOICES["model.architecture"]},
}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_copies_are_decoded_like_different_sentences(config: ModelConfig, rows: int) -> None:
    """In each step up to two copies leave, until sources lose all of their copies."""
    torch.manual_seed(1)
    model = build_model(config, VOCABULARY, VOCABULARY).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    model.eval()
    random = torch.Generator().manual_seed(3)
    state = model.start(Packed.from_sentences(SOURCES))
    state.repeat(COPIES)
    owners = [source for source in range(len(SOURCES)) for _ in range(COPIES)]  # the source of each copy
    prefixes = [[list[int]()] for _ in owners]  # of each row of each copy
    while owners:
        parents, extended = [], []
        for place, old in enumerate(prefixes):
            chosen = torch.randint(len(old), (rows if old[0] else 1,), generator=random).tolist()
            parents += [sum(map(len, prefixes[:place])) + row for row in chosen]
            extended.append([[*old[row], int(torch.randint(VOCABULARY, (), generator=random))] for row in chosen])
        if len(extended[0][0]) > 1:
            width, leave = len(extended[0]), int(torch.randint(3, (), generator=random))
            blocks = [parents[first : first + width] for first in range(0, len(parents), width)]
            for _ in range(min(leave, len(owners) - 1)):
                gone = int(torch.randint(len(owners), (), generator=random))
                for each in (owners, extended, blocks):
                    each.pop(gone)
            parents = [parent for block in blocks for parent in block]
        prefixes = extended
        flat = [prefix for block in prefixes for prefix in block]
        source = Packed.from_sentences([SOURCES[owner] for owner in owners for _ in prefixes[0]])
        with torch.no_grad():
            scores = model.advance(torch.tensor([prefix[-1] for prefix in flat]), torch.tensor(parents), state)
            full = model.logits(model(source, Packed.from_sentences(flat))).unflatten(0, (len(flat), -1))
        torch.testing.assert_close(scores, full[:, -1], rtol=1e-9, atol=1e-9)
        if len(owners) == 1:
            break
