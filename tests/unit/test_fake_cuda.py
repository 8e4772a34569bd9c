"""scripts/dev/fake_cuda counts what operations do on a GPU.

The fake device stays in the process that registers it, so the tests run processes of their own.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts" / "dev"
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="needs a C++ compiler"
)

OPERATIONS = {
    "product": ("a @ b", [1, 4 * (30 * 20 + 20 * 10 + 30 * 10), 2 * 30 * 20 * 10, 0]),
    "float32 product of bf16": (
        "torch.mm(a.bfloat16_, b.bfloat16_, out_dtype=torch.float32)",
        [1, 2 * (30 * 20 + 20 * 10) + 4 * 30 * 10, 2 * 30 * 20 * 10, 0],
    ),
    "the same tensor twice": ("a * a", [1, 4 * (600 + 600), 0, 0]),
    "in place": ("a.add_(a_like)", [1, 4 * (600 + 600 + 600), 0, 0]),
    "out=": ("torch.add(a, a_like, out=result)", [1, 4 * (600 + 600 + 600), 0, 0]),
    "fill": ("a.zero_()", [1, 4 * 600, 0, 0]),
    "copy": ("a.copy_(a_like)", [1, 4 * (600 + 600), 0, 0]),
    "cast": ("a.to(torch.bfloat16)", [1, 4 * 600 + 2 * 600, 0, 0]),
    "view": ("a.view(20, 30).t()[3:].unsqueeze(0)", [0, 0, 0, 0]),
    "allocation": ("torch.empty_like(a)", [0, 0, 0, 0]),
    "zeros like another": ("torch.zeros_like(a)", [1, 4 * 600, 0, 0]),
    "repeated row": ("a + row.expand(30, 20)", [1, 4 * (600 + 20 + 600), 0, 0]),
    "lookup": ("F.embedding(tokens, table)", [1, 4 * (5 * 8 + 5 * 8) + 8 * 5, 0, 0]),
    "list": ("torch._foreach_mul_([a, a_like], 2.0)", [1, 2 * 4 * (600 + 600), 0, 0]),
    "copies of a list": ("torch._foreach_copy_([a], [a_like])", [1, 4 * (600 + 600), 0, 0]),
    "custom operation": ("torch.ops.nmt_test.scale_(a, row)", [1, 4 * (600 + 20 + 600 + 30), 0, 0]),
    "value": ("a.sum().item()", [1, 4 * (600 + 1), 0, 1]),
    "condition": ("bool(a[0, 0] > 0)", [1, 4 + 1, 0, 1]),
    "boolean index": ("(a > 0).nonzero()", [1, 4 * 600 + 600, 0, 1]),
    "copy to the host": ("a.cpu()", [1, 2 * 4 * 600, 0, 1]),
    "copy to the device": ("host.to(cuda)", [1, 2 * 4 * 6, 0, 1]),
    "asynchronous copy": ("host.to(cuda, non_blocking=True)", [1, 2 * 4 * 6, 0, 0]),
    "work of the host": ("host + host", [0, 0, 0, 0]),
}
"""Code, and by hand: launches, bytes, FLOPs and host reads."""

PROGRAM = """
import sys, json
sys.path.insert(0, {scripts!r})
from fake_cuda.guard import register_device
register_device()
import torch
from torch.nn import functional as F
from fake_cuda.counting import Counter
from fake_cuda.device import fake_cuda

@torch.library.custom_op("nmt_test::scale_", mutates_args=("rows",))
def scale_(rows: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    raise AssertionError("nothing is computed on the fake device")

@scale_.register_fake
def _(rows, factors):
    return rows.new_empty(len(rows))

with fake_cuda():
    host, cuda = torch.ones(6), torch.device("cuda")
    with cuda:
        a, a_like, result, b = torch.ones(30, 20), torch.ones(30, 20), torch.ones(30, 20), torch.ones(20, 10)
        row, table, tokens = torch.ones(1, 20), torch.ones(1000, 8), torch.zeros(5, dtype=torch.int64)
    a.bfloat16_, b.bfloat16_ = a.bfloat16(), b.bfloat16()
    counts = {{}}
    for code in {codes!r}:
        with Counter() as counter:
            eval(code)
        total = counter.total()
        counts[code] = [total.launches, total.bytes, total.flops, total.host_reads]
print(json.dumps(counts))
"""


@pytest.mark.slow
@needs_compiler
def test_operations_are_counted_by_what_they_read_and_write() -> None:
    program = PROGRAM.format(scripts=str(SCRIPTS), codes=[code for code, _ in OPERATIONS.values()])
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=200)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == dict(OPERATIONS.values())


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
from nmt.training.graph_shapes import shape_of

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
