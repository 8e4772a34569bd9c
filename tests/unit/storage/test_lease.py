"""A lease keeps processes apart without a lock, and an abandoned one is replaced."""

import threading
import time

import pytest

from nmt.errors import UserError
from nmt.storage import lease
from nmt.storage.lease import Lease, LostLeaseError, leased
from tests.unit.storage.remote_folders import MemoryFolder

NAME, PLACE = "owner.lease", "s3://bucket/run"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.002)
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.005)
    monkeypatch.setattr(lease, "SETTLE_SECONDS", 0.03)
    monkeypatch.setattr(lease, "LEASE_SECONDS", 0.3)


def test_a_lease_is_gone_after_the_block() -> None:
    folder = MemoryFolder()
    with leased(folder, NAME, PLACE, taken="is taken", wait=None) as held:
        assert folder.files
        held.check()
    assert folder.files == {}


def test_an_owner_that_is_alive_is_named_in_the_refusal() -> None:
    folder = MemoryFolder()
    with leased(folder, NAME, PLACE, taken="is taken", wait=None):
        with pytest.raises(UserError, match=r"^s3://bucket/run is taken \(process \d+ on .+\)$"):
            Lease(folder, NAME, PLACE).take("is taken", None)
        assert folder.files, "the refused process must leave the lease of the other"


def test_threads_that_wait_take_turns() -> None:
    folder, inside, most, done = MemoryFolder(), [0], [0], [0]

    def work() -> None:
        with leased(folder, NAME, PLACE, taken="is taken", wait=lambda message: None):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            inside[0] -= 1
            done[0] += 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, done) == ([1], [6])


def test_an_abandoned_lease_is_replaced_and_its_owner_is_told() -> None:
    folder = MemoryFolder()
    dead = Lease(folder, NAME, PLACE)
    dead.take("is taken", None)
    dead._stopped.set()  # as if it had been killed
    with leased(folder, NAME, PLACE, taken="is taken", wait=None) as mine:
        mine.check()
        with pytest.raises(LostLeaseError, match="another process has taken it over: run the same command again"):
            dead.check()
        dead.release()
        mine.check()


def test_of_several_that_replace_an_abandoned_lease_one_gets_it() -> None:
    folder, got = MemoryFolder(), []
    folder.files[NAME] = b'{"owner": "dead"}'
    refused = []

    def work() -> None:
        each = Lease(folder, NAME, PLACE)
        try:
            each.take("is taken", None)
            got.append(each)
        except UserError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 3)
    got[0].release()


def test_a_lease_that_cannot_be_renewed_ends_the_work() -> None:
    folder = MemoryFolder()
    with leased(folder, NAME, PLACE, taken="is taken", wait=None) as held:
        folder.writes_left = 0
        held.check()
        time.sleep(0.4)
        with pytest.raises(LostLeaseError):
            held.check()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_a_damaged_lease_is_an_abandoned_one(content: bytes) -> None:
    folder = MemoryFolder()
    folder.files[NAME] = content
    with leased(folder, NAME, PLACE, taken="is taken", wait=None) as held:
        held.check()
