"""`nmt batch`: show the sentences that a step trained on."""

import sys

from nmt.config.schema import Config
from nmt.data.batches import IntArray, PairLengths, plan_epoch
from nmt.data.loader import DataPosition
from nmt.data.prepare import require_prepared
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer


def run(config: Config) -> None:
    """Print the pairs of the global batch of a step: source, tab, target."""
    step = config.batch.step
    if step > config.training.steps:  # each epoch before it would have to be planned
        raise UserError(f"batch.step={step} lies beyond training.steps={config.training.steps} of this run")
    require_prepared(config)
    store = PairStore.open(config.data_folder, "train")
    tokenizer = Tokenizer.load(config.data_folder)
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    place, pairs = find_batch(lengths, config.training.batch_tokens, config.seed, step)
    print(
        f"step {step} is batch {place.batch + 1} of epoch {place.epoch + 1}: {len(pairs)} pairs of train, "
        f"numbers {', '.join(map(str, pairs.tolist()))}",
        file=sys.stderr,
    )
    for pair in pairs.tolist():
        source, target = store.source(pair).tolist(), store.target(pair).tolist()
        print(f"{tokenizer.decode_source(source)}\t{tokenizer.decode(target)}")


def find_batch(lengths: PairLengths, batch_tokens: int, seed: int, step: int) -> tuple[DataPosition, IntArray]:
    """Where a step's batch lies in the data, and its pairs: each step takes one batch, epoch after epoch."""
    epoch, left = 0, step - 1
    while True:
        plan = plan_epoch(lengths, batch_tokens, seed, epoch)
        if left < len(plan):
            return DataPosition(epoch, left), plan[left]
        epoch, left = epoch + 1, left - len(plan)
