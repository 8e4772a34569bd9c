"""The model that the tests of the server share, and a client of a server that offers it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import nmt
from nmt.decoding.load import LoadedModel
from tests.unit.tiny_run import write_tiny_run

if TYPE_CHECKING:
    from tests.serving.harness import Client


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return nmt.load(write_tiny_run(tmp_path_factory.mktemp("outputs") / "tiny"), device="cpu", precision="fp32")


@pytest.fixture
def client(model: LoadedModel) -> "Iterator[Client]":
    from tests.serving.harness import CONFIG, Client, ThreadRunner, running

    with running(Client({"tiny": ThreadRunner(model)}, CONFIG)) as found:
        yield found
