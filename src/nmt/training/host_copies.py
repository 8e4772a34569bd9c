"""Copy the state of training from a GPU while training continues."""

from typing import Any

import torch
from torch import Tensor


class HostCopier:
    """Copies tensors from a GPU to page-locked memory, on a stream of its own.

    A copy to ordinary memory takes several times as long, and the process waits for it and for all earlier work of the
    GPU. Here the GPU copies while it computes the next gradient. Only the update of the weights waits for the copy.
    The page-locked buffers are kept, because locking memory is slow.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._buffers: dict[str, Tensor] = {}
        self._copied: torch.cuda.Event | None = None

    def copy(self, value: Any) -> tuple[Any, torch.cuda.Event]:
        """Start to copy nested containers; return the copies, and an event to wait for before they are read.

        The next call overwrites the copies. `before_update` must be called before the tensors change.
        """
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            copies = self._copy("", value)
            self._copied = self._stream.record_event()
        return copies, self._copied

    def before_update(self, *_: object) -> None:
        """Let the GPU finish the copies before it does what follows; the process does not wait."""
        if self._copied is not None:
            torch.cuda.current_stream(self._device).wait_event(self._copied)
            self._copied = None

    def _copy(self, name: str, value: Any) -> Any:
        match value:
            case Tensor() if value.device.type == self._device.type:
                value.record_stream(self._stream)  # its memory is not given to others before the copy is made
                return self._buffer(name, value).copy_(value.detach(), non_blocking=True)
            case Tensor():
                return value.detach().clone()
            case dict():
                return {key: self._copy(f"{name}/{key}", each) for key, each in value.items()}
            case list() | tuple():
                return type(value)(self._copy(f"{name}/{index}", each) for index, each in enumerate(value))
        return value

    def _buffer(self, name: str, value: Tensor) -> Tensor:
        """Return the page-locked buffer for a tensor; its place in the containers identifies it."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.shape != value.shape or buffer.dtype != value.dtype:
            buffer = self._buffers[name] = page_locked(value.shape, value.dtype)
        return buffer


def page_locked(shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Return memory that a GPU copies to without the help of the processor."""
    return torch.empty(shape, dtype=dtype, pin_memory=True)
