"""Count what a training step does on a GPU: launches, bytes, FLOPs, host reads and compiled graphs. No GPU is needed.

    .venv/bin/python scripts/dev/fake_cuda
    .venv/bin/python scripts/dev/fake_cuda experiment=wmt14_en_de_big --top 20
    .venv/bin/python scripts/dev/fake_cuda training.batch_tokens=3125 --device a100 --no-graphs --json

The real trainer runs two updates with the given settings, which are those of `nmt train`. Its tensors are on a fake
CUDA device: they have shapes, types and strides, but no values, so nothing is computed. The second update is counted.
A C++ compiler is needed once, to register the device in torch; the result is kept in the user's cache.

launches    operations of torch and of nmt on CUDA tensors. Views and allocations are none. One operation over a list of
            tensors counts once, and so does a fused optimizer, though a GPU may start a few kernels for one of them.
            RMSNorm and the gradient of SiLU, which are one operation on a GPU, are counted in parts. So are the fused
            operations of nmt on devices without bf16, such as --device v100, where they run as plain PyTorch.
GB          bytes that operations read and write. An operation in place both reads and writes its tensor; a copy or fill
            only writes its own; a lookup in a table reads only what it returns.
GB once     the same by a simpler rule: every tensor that an operation takes or returns counts once.
TFLOP       floating-point operations of matrix products, and of attention as if all sentences were as long as the
            longest of the batch.
host reads  times that the host waits for the device: values it reads, sizes it needs, copies that are not asynchronous.
ms          time by the roofline model: for each operation, the larger of bytes at 85% of the device's bandwidth and
            FLOPs at 62% of its peak, at least 4 microseconds. It ignores the tiles of attention and a slow host.
graphs      graphs that torch.compile makes of the model over ten random batches that differ in the number of
            sentences and in both lengths, with sentences longer than 256 tokens among them; breaks are places at which
            a graph ends early.
"""

import argparse
import json
import sys
from pathlib import Path

from nmt.errors import UserError


def main() -> int:
    """Print the counts; return the exit code."""
    options = _arguments()
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of all scripts, instead of this one's
    from fake_cuda.guard import register_device  # noqa: PLC0415 - found only now

    try:
        register_device()
        from fake_cuda.report import as_json, as_text, measure  # noqa: PLC0415 - imports torch

        report = measure(options.overrides, options.device, with_graphs=not options.no_graphs)
    except UserError as error:
        print(f"fake_cuda: {error}", file=sys.stderr)
        return 2
    print(json.dumps(as_json(report), indent=2) if options.json else as_text(report, options.top))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fake_cuda", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings, such as model=big")
    parser.add_argument(
        "--device",
        choices=("h200", "h100", "a100", "v100"),
        default="h100",
        help="device of the estimate; default: h100",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="also list the N slowest operations")
    parser.add_argument("--no-graphs", action="store_true", help="do not count compiled graphs, which takes longest")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
