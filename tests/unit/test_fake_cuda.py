"""A step does the same operations on a GPU for all batches of the same sizes, so that it can be recorded.

scripts/dev/fake_cuda stays in the process that registers it, so the tests run processes of their own.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts" / "dev"
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="needs a C++ compiler"
)


SAME_SIZES = """
import sys
sys.path.insert(0, {scripts!r})
from fake_cuda.guard import register_device
register_device()
import numpy as np
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from fake_cuda.device import fake_cuda
from fake_cuda.step import fake_batch, fake_trainer
from nmt.config.compose import compose
from nmt.data.loader import DataPosition, GlobalBatch, assemble
from nmt.data.store import in_memory
from nmt.training.recorded_passes import shape_of

class Sequence(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {{}}))
        self.found.append((str(func), [tuple(each.shape) for each in tree_leaves(result) if hasattr(each, "shape")]))
        return result

def batch(seed, count, mean, shapes):
    random = np.random.default_rng(seed)
    lengths = [random.permutation(np.arange(count) % (2 * mean - 1) + 1) for _ in range(2)]
    store = in_memory(*((random.integers(4, 1000, int(each.sum())), each) for each in lengths))
    micro = assemble(store, np.arange(count), shapes=shapes)
    tokens = int(lengths[1].sum()) + count
    return GlobalBatch([micro], tokens, 2 * tokens, DataPosition())

with fake_cuda() as mode:
    settings = ["model.layers=2", "tokenizer.vocab_size=1000", "training.batch_tokens=4096", *{extra!r}]
    trainer = fake_trainer(compose(settings))
    with unset_fake_temporarily():
        shapes = trainer.shapes(0)
        real = [batch(1, 80, 20, shapes), batch(2, 80, 20, shapes), batch(3, 81, 20, shapes), batch(4, 40, 10, shapes)]
    sizes = [shape_of(each.micro_batches[0].source, each.micro_batches[0].target) for each in real]
    assert sizes[0] == sizes[1] != sizes[3], sizes
    sequences = []
    trainer.update(fake_batch(mode, real[0]))  # allocates the averages
    for each in real:
        sequence = Sequence()
        fake = fake_batch(mode, each)
        with sequence:
            trainer.update(fake)
        sequences.append(sequence.found)
    assert len(sequences[0]) > 200
    assert sequences[0] == sequences[1]
    assert (sequences[0] == sequences[2]) == (sizes[0] == sizes[2])
    assert sequences[0] != sequences[3]
"""


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    "extra", [[], ["training.clip_norm=1", "training.ema=0.9", "model.norm_placement=pre"]], ids=str
)
def test_a_step_does_the_same_for_all_batches_of_the_same_sizes(extra: list[str]) -> None:
    program = SAME_SIZES.format(scripts=str(SCRIPTS), extra=extra)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
