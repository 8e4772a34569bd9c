"""Count what a training step does on a GPU: launches, bytes, FLOPs, host reads. No GPU is needed.

    .venv/bin/python scripts/dev/fake_cuda
    .venv/bin/python scripts/dev/fake_cuda experiment=wmt14_en_de_big

The real trainer runs two updates with the given settings, which are those of `nmt train`. Its tensors are on a fake
CUDA device: they have shapes, types and strides, but no values, so nothing is computed. The second update is counted,
and the counts are printed as JSON. A C++ compiler is needed, to register the device in torch.

launches    operations of torch and of nmt on CUDA tensors. Views and allocations are none. One operation over a list of
            tensors counts once, and so does a fused optimizer, though a GPU may start a few kernels for one of them.
bytes       bytes that operations read and write. An operation in place both reads and writes its tensor; a copy or fill
            only writes its own; a lookup in a table reads only what it returns.
flops       floating-point operations of matrix products, and of attention as if all sentences were as long as the
            longest of the batch.
host_reads  times that the host waits for the device: values it reads, and copies that are not asynchronous.
"""

import argparse
import ctypes
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings, such as model=big")
    options = parser.parse_args()
    register_device()
    from fake_cuda.step import count_step  # noqa: PLC0415 - imports torch

    print(json.dumps(count_step(options.overrides), indent=2))


def register_device() -> None:
    """Register the device in this process, before torch is imported, because torch looks for devices then."""
    compiler = next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), None)
    specification = importlib.util.find_spec("torch")
    if not (compiler and specification and specification.origin):
        raise SystemExit("there is no C++ compiler, which a fake CUDA device needs: install g++ or clang++")
    torch = Path(specification.origin).parent
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/guard.so"
        flags = [f"-I{torch}/include", f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-lc10", "-ltorch_cpu"]
        source = Path(__file__).with_name("guard.cpp")
        subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", source, *flags, "-o", library], check=True)
        loaded = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    importlib.import_module("torch")
    loaded.register_guard()


if __name__ == "__main__":
    main()
