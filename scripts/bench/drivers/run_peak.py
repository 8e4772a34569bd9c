"""Measure the FLOP/s of a large matrix product: the peak to which training steps are compared."""

import time

import torch
from protocol import Job, Result, serve

from nmt.compute.machine import Machine, wait
from nmt.model.backends.chosen import choose

SIZE = 2048
SIZE_ON_GPU = 8192
SECONDS = 2.0


def peak(job: Job) -> Result:
    """Return the FLOP/s of the fastest product within `SECONDS`, by the library that nmt uses."""
    torch.set_num_threads(job["threads"])
    dtype = torch.bfloat16 if job["precision"] == "bf16" else torch.float32
    backend = choose(Machine(torch.device(job["device"]), dtype), kernels=True)
    size = SIZE if job["device"] == "cpu" else SIZE_ON_GPU
    left, right = (torch.randn(size, size, device=job["device"], dtype=dtype) for _ in range(2))
    fastest, ends = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < ends:
        began = time.perf_counter()
        backend.multiply(left, right)
        wait(torch.device(job["device"]))
        fastest = min(fastest, time.perf_counter() - began)
    return {"flops": 2 * size**3 / fastest}


if __name__ == "__main__":
    serve({"speed": peak})
