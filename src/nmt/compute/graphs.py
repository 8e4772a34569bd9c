"""CUDA graphs: work that is recorded once, so that a GPU need not wait for the processor to start it again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from nmt.compute.machine import is_out_of_memory
from nmt.errors import UserError


class GraphRecorder:
    """Records work on a device, on a stream of its own. All its graphs share memory, so replay one at a time."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)
        self._memory = torch.cuda.graph_pool_handle()
        self.verified = False
        """Whether a replay has been compared with the work itself."""

    def record(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Return the graph of what `work` starts on the device; nothing is computed before a replay."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self._device)
        with torch.cuda.stream(self._stream):
            # other threads go on to prepare batches
            graph.capture_begin(pool=self._memory, capture_error_mode="thread_local")
            try:
                work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(self._device).wait_stream(self._stream)
        return graph


@contextmanager
def explaining_failure(advice: str) -> Iterator[None]:
    """Raise a UserError if recording in this block fails, with advice on what to do."""
    try:
        yield
    except (RuntimeError, AssertionError) as error:  # whatever fails in a recording
        if is_out_of_memory(error):
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"this cannot be recorded as a CUDA graph ({reason}): {advice}") from error
