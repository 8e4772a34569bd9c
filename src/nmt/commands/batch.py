"""`nmt batch`: print the sentence pairs of a training step."""

import sys

from nmt.config.schema import Config
from nmt.data.batches import IntArray, PairLengths, plan_epoch
from nmt.data.loader import DataPosition
from nmt.data.noise.noise import make_noise
from nmt.data.prepare import require_prepared
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer


def run(config: Config) -> None:
    """Print the pairs of a step's global batch: source, tab, target; with noise, as the word pieces of that step."""
    step = config.batch.step
    if step > config.training.steps:  # later steps do not exist, and all epochs before them would have to be planned
        raise UserError(f"batch.step={step} lies beyond training.steps={config.training.steps} of this run")
    require_prepared(config)
    store = PairStore.open(config.data_folder, "train")
    tokenizer = Tokenizer.load(config.data_folder)
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    position, pairs = find_batch(lengths, config.training.batch_tokens, config.seed, step)
    print(
        f"step {step} is batch {position.batch + 1} of epoch {position.epoch + 1}: {len(pairs)} pairs of train, "
        f"numbers {', '.join(map(str, pairs.tolist()))}",
        file=sys.stderr,
    )
    noise = make_noise(config.noise, tokenizer, config.seed, config.data.max_pieces)
    if noise is not None:
        _print_pieces(noise.batch(store, pairs, position.epoch), tokenizer)
        return
    for pair in pairs.tolist():
        source, target = store.source(pair).tolist(), store.target(pair).tolist()
        print(f"{tokenizer.decode_source(source)}\t{tokenizer.decode(target)}")


def _print_pieces(store: PairStore, tokenizer: Tokenizer) -> None:
    """Print all pairs of a store as word pieces, because noise may change these alone."""
    for pair in range(len(store)):
        source = tokenizer.source_pieces(store.source(pair).tolist())
        target = tokenizer.target_pieces(store.target(pair).tolist())
        print(f"{' '.join(source)}\t{' '.join(target)}")


def find_batch(lengths: PairLengths, batch_tokens: int, seed: int, step: int) -> tuple[DataPosition, IntArray]:
    """Return the position and the pairs of a step's global batch; each step takes one, epoch after epoch."""
    epoch, left = 0, step - 1
    while True:
        plan = plan_epoch(lengths, batch_tokens, seed, epoch)
        if left < len(plan):
            return DataPosition(epoch, left), plan[left]
        epoch, left = epoch + 1, left - len(plan)
