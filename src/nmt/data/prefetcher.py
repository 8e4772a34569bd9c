"""Assemble global batches in a background thread, ahead of the training steps that need them."""

import queue
import threading
from collections.abc import Iterator

from nmt.data.loader import GlobalBatch

PREFETCHED_BATCHES = 4
"""Global batches assembled ahead of the one that is being trained on."""


class Prefetcher(Iterator[GlobalBatch]):
    """Assembles global batches in a background thread, a few ahead of the training that uses them.

    Use it in a `with` block, whose end stops the thread.
    """

    def __init__(self, batches: Iterator[GlobalBatch], *, pin_memory: bool = False) -> None:
        """Fetch from `batches`; `pin_memory` speeds up their copy to a GPU."""
        self._queue: queue.Queue[GlobalBatch | Exception] = queue.Queue(maxsize=PREFETCHED_BATCHES)
        self._stopped = threading.Event()
        self._pin_memory = pin_memory
        self._thread = threading.Thread(target=self._fill, args=(batches,), name="batches", daemon=True)

    def __enter__(self) -> "Prefetcher":
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        self._stopped.set()
        self._thread.join()

    def __next__(self) -> GlobalBatch:
        """Return the next global batch, or raise the error met while assembling it."""
        item = self._queue.get()
        if isinstance(item, Exception):
            raise item
        return item

    def _fill(self, batches: Iterator[GlobalBatch]) -> None:
        try:
            for batch in batches:
                if not self._put(batch.pinned() if self._pin_memory else batch):
                    return
        except Exception as error:  # of any kind: it is raised again in the thread that waits for a batch
            self._put(error)

    def _put(self, item: GlobalBatch | Exception) -> bool:
        """Put an item into the queue; return whether it was put before the thread was stopped."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False
