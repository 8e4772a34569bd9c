"""Count the launches of a step, and the sizes of micro-batches that CUDA graphs would be recorded for."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from nmt.commands.describe import describe
from nmt.config.schema import Config
from nmt.data.batches import IntArray, PairLengths, plan_epoch
from nmt.data.batching import Batching
from nmt.data.loader import split_for_devices
from nmt.data.micro_batch_size import full_micro_batch_tokens
from nmt.data.shapes import Shapes
from nmt.data.store import PairStore
from nmt.data.synthetic import synthetic_pairs
from nmt.training.graph_shapes import MAX_SHAPES, Recorded, Shape

DEVICES = (1, 2, 4, 8)
"""The numbers of GPUs."""
PAIRS, STEPS = 4_000_000, 4000
"""Sentence pairs of the synthetic text, and the steps of it that are counted."""
FORWARD, LOSS, BACKWARD, ONCE = 124, 56, 352, 35
"""Launches of base and big, as fake_cuda counts them: of a micro-batch, and of the norm, the optimizer and others."""
REPLAY, ZEROING = 9, 1
"""Launches with graphs: of a micro-batch, to copy seven inputs, to set the factor of the loss and to replay; and once,
to zero the gradient buffers."""
AVERAGING = 2
"""Launches to average the gradients over several GPUs: divide, and reduce."""
INPUT_BYTES_PER_TOKEN, INPUT_BYTES_PER_SENTENCE = 16, 4
"""What a graph keeps of its inputs: tokens and positions, and offsets."""


class Count(NamedTuple):
    """What is counted for a number of GPUs."""

    launches: int
    launches_with_graphs: int
    """If forward and backward pass are replayed."""
    shapes: int
    """Different sizes in `STEPS` steps of one GPU."""
    share_of_frequent: float
    """The share of the steps that have one of the `MAX_SHAPES` most frequent sizes."""
    share_replayed: float
    """The share of the steps whose size is recorded when they come."""
    share_of_recorded: float
    """The share of the steps that have one of the sizes that are recorded in the end."""
    graph_bytes: int
    """The inputs of the recorded graphs, and the activations of the largest micro-batch, which all graphs share."""


def count(config: Config, gpus: int, text: PairStore) -> Count:
    """Return the counts for a number of GPUs."""
    figures = describe(config, gpus)
    found = shapes_of_steps(config, gpus, text)
    frequent = Counter(found).most_common(MAX_SHAPES)
    recorded = Recorded(MAX_SHAPES)
    replayed = sum(map(recorded.meet, found))
    return Count(
        launches=launches(figures.accumulation, gpus),
        launches_with_graphs=launches(figures.accumulation, gpus, graphs=True),
        shapes=len(set(found)),
        share_of_frequent=sum(times for _, times in frequent) / len(found),
        share_replayed=replayed / len(found),
        share_of_recorded=sum(shape in recorded.shapes for shape in found) / len(found),
        graph_bytes=figures.memory.activations + sum(map(input_bytes, recorded.shapes)),
    )


def launches(micro_batches: int, gpus: int, *, graphs: bool = False) -> int:
    """Return the launches of a step."""
    each = REPLAY if graphs else FORWARD + LOSS + BACKWARD
    return micro_batches * each + ONCE + (ZEROING if graphs else 0) + (AVERAGING if gpus > 1 else 0)


def input_bytes(shape: Shape) -> int:
    """Return the bytes of the inputs that a graph keeps."""
    tokens = shape.source_tokens + shape.target_tokens
    offsets = shape.source_sentences + shape.target_sentences
    return INPUT_BYTES_PER_TOKEN * tokens + INPUT_BYTES_PER_SENTENCE * offsets


def shapes_of_steps(config: Config, gpus: int, text: PairStore) -> list[Shape]:
    """Return the size of the first micro-batch of the first GPU in each step."""
    training = config.training
    lengths = PairLengths.with_marks(text.source_lengths, text.target_lengths)
    plan = plan_epoch(lengths, Batching.of(training, config.seed), epoch=0)
    shapes = Shapes.on_gpu(full_micro_batch_tokens(training.batch_tokens, training.device_tokens, gpus))
    found = []
    for index in range(min(STEPS, len(plan))):
        pairs = split_for_devices(plan[index], lengths, training.device_tokens, gpus, 1)[0]
        found.append(shape_of_pairs(lengths.source[pairs], lengths.target[pairs], shapes))
    return found


def shape_of_pairs(source: IntArray, target: IntArray, shapes: Shapes) -> Shape:
    """Return the size of the micro-batch of pairs of these lengths, with its filler, as `assemble` packs it."""
    filler = shapes.filler(source, target)
    sentences = shapes.sentences(len(source) + len(filler[0])) + 1
    sides = [np.append(side, more) for side, more in zip((source, target), filler, strict=True)]
    source_tokens, target_tokens = (int(side.sum()) for side in sides)
    longest_source, longest_target = (shapes.longest(int(side.max())) for side in sides)
    return Shape(source_tokens, target_tokens, sentences, sentences, longest_source, longest_target)


def shapes_table(config: Config) -> str:
    """Return the counts as a table in Markdown."""
    text = synthetic_pairs(config.tokenizer.vocab_size, config.tokenizer.vocab_size, pairs=PAIRS, seed=config.seed)
    lines = [
        f"| GPUs | launches | with graphs | sizes in {STEPS:,} steps | steps with the {MAX_SHAPES} most frequent | "
        "with recorded sizes, in these steps | in later ones | GB for graphs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for gpus in DEVICES:
        each = count(config, gpus, text)
        shares = " | ".join(
            f"{share:.0%}" for share in (each.share_of_frequent, each.share_replayed, each.share_of_recorded)
        )
        counts = f"{each.launches} | {each.launches_with_graphs} | {each.shapes}"
        lines.append(f"| {gpus} | {counts} | {shares} | {each.graph_bytes / 1e9:.1f} |")
    return "\n".join(lines)
