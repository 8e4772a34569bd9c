"""Measure the time and memory of planning an epoch, and how many parts of the text a global batch reads from.

    .venv/bin/python scripts/dev/plan_memory --pairs 100000000

The lengths are drawn at random: about 27 tokens per side, at most 250. The checksum of the plan shows whether a change
of the code has changed it.
"""

import re
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np

from nmt.data.batches import PairLengths, plan_epoch
from nmt.data.batching import Batching

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, run_tool, tool_parser

STATUS = Path("/proc/self/status")
LONGEST, LOG_MEAN, LOG_DEVIATION = 250, 3.2, 0.55
"""The lengths of source sentences: log-normal, with a limit."""
RATIO, RATIO_DEVIATION = 1.05, 0.15
"""Target tokens per source token."""
COUNTED_BATCHES = 300


def main() -> None:
    """Plan one epoch, and print what it took."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--pairs", type=at_least(1), default=20_000_000)
    parser.add_argument("--batch-tokens", type=at_least(1), default=25_000)
    parser.add_argument(
        "--parts", type=at_least(1), default=500, help="equal parts of the text, such as files of 256 MB"
    )
    arguments = parser.parse_args()
    lengths = random_lengths(arguments.pairs)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before, started, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    plan = plan_epoch(lengths, Batching(arguments.batch_tokens, seed=1), epoch=0)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    bytes_per_pair = (memory("VmHWM") - before) / arguments.pairs
    batches = [plan[index] for index in range(min(COUNTED_BATCHES, len(plan)))]
    read = np.mean([len(np.unique(batch.astype(np.int64) * arguments.parts // arguments.pairs)) for batch in batches])
    digest = sha256(plan.order.tobytes() + plan.bounds.tobytes()).hexdigest()[:12]
    print(f"{arguments.pairs:,} pairs in {len(plan):,} batches, plan {digest}")
    print(
        f"{seconds:.1f} s, {cpu_seconds:.1f} CPU seconds; at most {bytes_per_pair:.1f} bytes per pair on top of lengths"
    )
    mean = np.mean([len(batch) for batch in batches])
    print(f"a batch of {mean:.0f} pairs reads from {read:.0f} of {arguments.parts} parts")


def random_lengths(pairs: int) -> PairLengths:
    """Return lengths like those of real text."""
    random = np.random.default_rng(7)
    source = np.clip(np.rint(random.lognormal(LOG_MEAN, LOG_DEVIATION, pairs)), 1, LONGEST).astype(np.int32)
    target = source * random.normal(RATIO, RATIO_DEVIATION, pairs)
    return PairLengths.with_marks(source, np.clip(np.rint(target), 1, LONGEST).astype(np.int32))


def memory(name: str) -> int:
    """Return a figure of this process's memory, in bytes."""
    found = re.search(rf"^{name}:\s*(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    run_tool(main, __file__)
