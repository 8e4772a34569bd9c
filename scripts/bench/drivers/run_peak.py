"""What a large matrix product reaches on this machine: the peak that a step's share is measured against."""

import time

import torch
from protocol import Job, Result, serve

SIZE = 2048
SECONDS = 2.0


def peak(job: Job) -> Result:
    """FLOP/s of torch.mm, as the fastest of the products made in some seconds."""
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
