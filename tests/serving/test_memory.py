"""The memory of a model runs out: the sentence that needs too much is refused alone, and all others are translated."""

import asyncio
from typing import Any

import httpx
import pytest
import torch

from nmt.decoding.loaded_model import LoadedModel
from nmt.decoding.request import Request
from nmt.serving import worker
from nmt.serving.requests import Batch, Failure, Task
from tests.serving.harness import Client, until
from tests.unit.small_models import LINES

POISON = "poison"
TOO_MANY_BYTES = 1 << 60


def allocate(kind: str) -> None:
    """Let memory run out in one of the ways in which it does."""
    if kind == "in PyTorch":
        torch.empty(TOO_MANY_BYTES, dtype=torch.uint8)
    bytearray(TOO_MANY_BYTES)


@pytest.fixture(params=["in PyTorch", "in Python"])
def batches(model: LoadedModel, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[list[str]]:
    """Let the model's memory run out for one sentence; return the batches that it is asked to translate."""
    asked: list[list[str]] = []
    translate = type(model).translate

    def limited(self: LoadedModel, requests: list[Request | str], **options: Any) -> Any:
        texts = [each.text if isinstance(each, Request) else each for each in requests]
        asked.append(texts)
        if POISON in texts:
            with self.engine._inference():  # type: ignore[attr-defined]  # which explains errors of PyTorch
                allocate(request.param)
        return translate(self, requests, **options)

    monkeypatch.setattr(type(model), "translate", limited)
    return asked


@pytest.mark.parametrize(("task", "status"), [({}, 503), ({"beam": 16}, 413), ({"details": True}, 413)])
def test_only_the_sentence_that_needs_too_much_memory_is_refused(
    client: Client, batches: list[list[str]], task: dict[str, Any], status: int
) -> None:
    runner = client.runners["tiny"]

    async def crowd() -> list[httpx.Response]:
        runner.held = asyncio.Event()
        texts = ["first", LINES[0], LINES[1], POISON, LINES[2]]
        bodies = ({"text": text, **task} for text in texts)
        asking = [asyncio.ensure_future(client._request("POST", "/v1/translate", json=next(bodies)))]
        await until(lambda: bool(runner.batches))
        asking += [asyncio.ensure_future(client._request("POST", "/v1/translate", json=body)) for body in bodies]
        await until(lambda: len(client.models[0].batcher.waiting) == 4)
        runner.held.set()
        return await asyncio.gather(*asking)

    answers = client.run(crowd())
    assert [each.status_code for each in answers] == [200, 200, 200, status, 200]
    refused = answers[3]
    assert "too little memory" in refused.json()["error"]
    assert POISON not in refused.text
    assert ("Retry-After" in refused.headers) == (status == 503)
    assert client.post("/v1/translate", json={"text": LINES[0], **task}).status_code == 200


def test_a_gpu_that_does_nothing_any_more_ends_the_process_and_others_do_not(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(type(model), "translate", fail)
    batch = Batch(Task(), [Request(LINES[0])])
    assert worker.answer(model, batch) == [Failure("the model failed", 500)]
    monkeypatch.setattr(worker, "check_usable", fail)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        worker.answer(model, batch)


def test_the_sentence_is_found_by_halving(model: LoadedModel, batches: list[list[str]]) -> None:
    texts = [f"{LINES[0]} {number}" for number in range(16)]
    texts[11] = POISON
    found = worker.answer(model, Batch(Task(), [Request(text) for text in texts]))
    assert [number for number, each in enumerate(found) if not isinstance(each, dict)] == [11]
    assert sorted(map(len, batches)) == [1, 1, 2, 2, 4, 4, 8, 8, 16]  # each half of a batch that failed
    alone = model.translate([texts[3]])[0].text
    assert isinstance(found[3], dict)
    assert found[3]["candidates"][0]["text"] == alone
