"""Measure the FLOP/s of a large matrix product: the peak to which training steps are compared."""

import time

import torch
from protocol import Job, Result, serve

SIZE = 2048
SECONDS = 2.0


def peak(job: Job) -> Result:
    """Return the FLOP/s of the fastest `torch.mm` within `SECONDS`."""
    torch.set_num_threads(job["threads"])
    dtype = torch.bfloat16 if job["precision"] == "bf16" else torch.float32
    left, right, out = (torch.randn(SIZE, SIZE).to(dtype) for _ in range(3))
    fastest, ends = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < ends:
        began = time.perf_counter()
        torch.mm(left, right, out=out)
        fastest = min(fastest, time.perf_counter() - began)
    return {"flops": 2 * SIZE**3 / fastest}


if __name__ == "__main__":
    serve({"peak": peak})
