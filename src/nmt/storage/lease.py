"""Let only one process at a time change what is at an address, where a lock would not end with its process.

A lease is a small file with its owner, which the owner writes again at short intervals. A process that finds one waits
until it has not changed for LEASE_SECONDS, by its own clock, and then replaces it. Clocks of machines are not compared.

Guaranteed, if the file system can create a file only if there is none (S3, Google Cloud Storage, Azure, local files):
of several processes that begin together, one gets the lease. Replacing an abandoned lease is not atomic: everyone who
replaces it reads it again after SETTLE_SECONDS, and the last one to write keeps it. An owner that could not renew its
lease for LEASE_SECONDS stops writing before the address is changed again.
"""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from nmt.errors import UserError
from nmt.storage.addresses import RemoteFolder

LEASE_SECONDS = 180.0
"""How long a lease may stay unchanged before others replace it."""
RENEW_SECONDS = 30.0
SETTLE_SECONDS = 5.0
POLL_SECONDS = 3.0


class LostLeaseError(UserError):
    """Another process has taken over what this one was changing."""


class Lease:
    """A lease that this process holds."""

    def __init__(self, folder: RemoteFolder, name: str, place: str) -> None:
        """Prepare a lease on a place, which messages name."""
        self._folder, self._name, self._place = folder, name, place
        self._owner = f"process {os.getpid()} on {socket.gethostname()}"
        self._token, self._number = secrets.token_hex(8), 0
        self._renewed = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def _content(self) -> bytes:
        self._number += 1
        started = {"owner": self._owner, "token": self._token, "number": self._number, "time": time.time()}
        return json.dumps(started).encode()

    def _is_mine(self, content: bytes | None) -> bool:
        return content is not None and self._token in content.decode(errors="replace")

    def take(self, taken: str, wait: Callable[[str], None] | None) -> None:
        """Get the lease, as soon as there is none or it has been abandoned.

        Args:
            taken: The rest of the message, after the place and the owner, if another process holds it.
            wait: Takes this message before waiting for an owner that is alive. Without it, the message is an error.
        """
        seen, since, told = b"", 0.0, False
        while not self._folder.create(self._name, self._content()):
            found = self._folder.read(self._name)
            if found is None:
                continue
            message = f"{self._place} {taken} ({_owner(found)})"
            if found != seen:
                if seen and wait is None:
                    raise UserError(message)
                seen, since = found, time.monotonic()
            elif time.monotonic() - since > LEASE_SECONDS and self._replace():
                break
            if not told:
                (wait or _say)(message if wait else f"{self._place}: waiting to see whether its owner is alive")
                told = True
            time.sleep(POLL_SECONDS)
        self._renewed = time.monotonic()
        self._thread.start()

    def _replace(self) -> bool:
        """Replace an abandoned lease; return whether nobody else has replaced it at the same time."""
        self._folder.write(self._name, self._content())
        time.sleep(SETTLE_SECONDS)
        return self._is_mine(self._folder.read(self._name))

    def _renew(self) -> None:
        while not self._stopped.wait(RENEW_SECONDS):
            with suppress(UserError):  # `check` finds out when it has been too long
                if not self._is_mine(self._folder.read(self._name)):
                    self._renewed = -LEASE_SECONDS
                    return
                self._folder.write(self._name, self._content())
                self._renewed = time.monotonic()

    def check(self) -> None:
        """Refuse to go on if others have replaced the lease, or may do so now."""
        if time.monotonic() - self._renewed < LEASE_SECONDS and self._is_mine(self._folder.read(self._name)):
            return
        raise LostLeaseError(
            f"{self._place} could not be reserved for {LEASE_SECONDS:g} s, or another process has taken it over: "
            "run the same command again"
        )

    def release(self) -> None:
        """Give the lease back; others replace it later if that fails."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        with suppress(UserError):
            if self._is_mine(self._folder.read(self._name)):
                self._folder.remove(self._name)


@contextmanager
def leased(
    folder: RemoteFolder, name: str, place: str, *, taken: str, wait: Callable[[str], None] | None
) -> Iterator[Lease]:
    """Hold a lease during this block."""
    lease = Lease(folder, name, place)
    lease.take(taken, wait)
    try:
        yield lease
    finally:
        lease.release()


def _owner(content: bytes) -> str:
    try:
        return str(json.loads(content)["owner"])
    except (ValueError, KeyError, TypeError):
        return "its owner is unknown"


def _say(message: str) -> None:
    print(message, flush=True)
