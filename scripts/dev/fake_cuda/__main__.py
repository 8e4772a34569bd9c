"""Count what a step of training or beam search does on a GPU: launches, bytes, FLOPs, host reads. No GPU is needed.

    .venv/bin/python scripts/dev/fake_cuda
    .venv/bin/python scripts/dev/fake_cuda experiment=wmt14_en_de_big
    .venv/bin/python scripts/dev/fake_cuda --decoding

The real trainer runs two updates with the given settings, which are those of `nmt train`. Its tensors are on a fake
CUDA device: they have shapes, types and strides, but no values, so nothing is computed. The second update is counted,
and the counts are printed as JSON. A C++ compiler is needed once, to register the device in torch.

launches    operations of torch and of nmt on CUDA tensors. Views and allocations are none. One operation over a list of
            tensors counts once, and so does a fused optimizer, though a GPU may start a few kernels for one of them.
bytes       bytes that operations read and write. An operation in place both reads and writes its tensor; a copy or fill
            only writes its own; a lookup in a table reads only what it returns.
flops       floating-point operations of matrix products, and of attention as if all sentences were as long as the
            longest of the batch.
host_reads  times that the host waits for the device: values it reads, sizes it needs, copies that are not asynchronous.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        prog="fake_cuda", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings, such as model=big")
    parser.add_argument("--decoding", action="store_true", help="count a step of beam search instead")
    options = parser.parse_args()
    from fake_cuda.guard import register_device  # noqa: PLC0415 - before torch is imported

    register_device()
    from fake_cuda.step import count_decoding, count_step  # noqa: PLC0415 - imports torch

    print(json.dumps((count_decoding if options.decoding else count_step)(options.overrides), indent=2))


if __name__ == "__main__":
    main()
