"""`nmt batch`: print the sentence pairs of a training step."""

import sys

from nmt.config.tree import Config
from nmt.data.batches import Batching, IntArray, PairLengths, PlanOf
from nmt.data.loader import DataPosition
from nmt.data.mixture import open_training_text
from nmt.data.noise import make_noise
from nmt.data.prepared import require_prepared
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer


def run(config: Config) -> None:
    """Print the pairs of a step's global batch: source, tab, target; as word pieces if the settings add noise.

    With several corpora, the corpus and a tab stand before each pair.
    """
    step = config.batch.step
    if step > config.training.steps:  # later steps do not exist, and all epochs before them would have to be planned
        raise UserError(f"batch.step={step} lies beyond training.steps={config.training.steps} of this run")
    require_prepared(config)
    store = open_training_text(config.data_folder, config.data)
    tokenizer = Tokenizer.load(config.data_folder)
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    position, pairs = find_batch(store.planner(lengths, Batching.of(config.training, config.seed)), step)
    print(
        f"step {step} is batch {position.batch + 1} of epoch {position.epoch + 1}: {len(pairs)} pairs of train, "
        f"numbers {', '.join(map(str, pairs.tolist()))}",
        file=sys.stderr,
    )
    if noise := make_noise(config.noise, tokenizer, config.seed, config.data.max_pieces):
        noisy = noise(store, pairs, position.epoch)
        shown = [_pieces(noisy, tokenizer, place) for place in range(len(noisy))]
    else:
        shown = [_text(store, tokenizer, pair) for pair in pairs.tolist()]
    for corpus, sides in zip(store.corpora_of(pairs).tolist(), shown, strict=True):
        print(*store.corpora[corpus : corpus + 1], *sides, sep="\t")


def _text(store: PairStore, tokenizer: Tokenizer, pair: int) -> tuple[str, str]:
    """Return a pair as text."""
    return tokenizer.decode_source(store.source(pair).tolist()), tokenizer.decode(store.target(pair).tolist())


def _pieces(store: PairStore, tokenizer: Tokenizer, pair: int) -> tuple[str, str]:
    """Return a pair as word pieces, because noise may change these alone."""
    source = tokenizer.source_pieces(store.source(pair).tolist())
    target = tokenizer.target_pieces(store.target(pair).tolist())
    return " ".join(source), " ".join(target)


def find_batch(plan_of: PlanOf, step: int) -> tuple[DataPosition, IntArray]:
    """Return the position and the pairs of a step's global batch; each step takes one, epoch after epoch."""
    epoch, left = 0, step - 1
    while True:
        plan = plan_of(epoch)
        if left < len(plan):
            return DataPosition(epoch, left), plan[left]
        epoch, left = epoch + 1, left - len(plan)
