"""Measure the FLOP/s of a large matrix product: the peak to which training steps are compared."""

import time

import torch
from protocol import Job, Result, serve

from nmt.model.products import multiply_into

SIZE = 2048
SECONDS = 2.0


def peak(job: Job) -> Result:
    """Return the FLOP/s of the fastest product within `SECONDS`, by the library that nmt uses."""
    torch.set_num_threads(job["threads"])
    dtype = torch.bfloat16 if job["precision"] == "bf16" else torch.float32
    left, right, out = (torch.randn(SIZE, SIZE).to(dtype) for _ in range(3))
    fastest, ends = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < ends:
        began = time.perf_counter()
        multiply_into(out, left, right)
        fastest = min(fastest, time.perf_counter() - began)
    return {"flops": 2 * SIZE**3 / fastest}


if __name__ == "__main__":
    serve({"peak": peak})
