"""Requests that would need too much memory, time or space, and hosts that are not the server's."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")

from nmt.config.commands import ServeConfig
from nmt.config.decoding import DecodingConfig
from nmt.decoding.attention import attention_bytes
from nmt.decoding.loaded_model import LoadedModel
from nmt.decoding.request import Request
from nmt.decoding.torch_engine import TorchEngine
from nmt.runs.checkpoint import CheckpointRecord
from nmt.serving import cost, worker
from nmt.serving.hosts import accepted_hosts, is_accepted
from nmt.serving.markup import texts_between_tags
from nmt.serving.requests import Batch, Failure, Task
from tests.serving.harness import Client
from tests.unit.small_models import LINES, make_model, make_tokenizer


def cost_of(task: Task, requests: Sequence[Request], hypotheses: int = 4) -> int:
    return cost.cost_of(task, requests, hypotheses)


def work_of(task: Task, requests: Sequence[Request], hypotheses: int = 4) -> int:
    return cost.work_of(task, requests, hypotheses)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/translate", {"text": "a " * 299, "details": True, "nbest": 10}, "costs"),
        ("/v1/translate", {"text": "dog " * 2000, "beam": 16}, "costs"),
        ("/v1/translate", {"text": [""] * 21}, "more than 20"),
        ("/v1/translate", {"text": ["", "A dog."] * 10 + ["a"]}, "more than 20"),
        ("/v1/translate", {"text": ["A dog. A cat.", *[""] * 19]}, "more than 20"),
        ("/v1/translate", {"text": "a", "terms": [["#" * 21, "x"]]}, "at most 20 words"),
        ("/v1/translate", {"text": "a", "terms": [["x", "a " * 21]]}, "at most 20 words"),
        ("/v1/translate", {"text": "a", "terms": [["a", "x" * 301]]}, "at most 300 characters"),
        ("/v1/translate", {"text": "a b", "terms": [["a", "x" * 151], ["b", "y" * 151]]}, "at most 300 characters"),
        ("/v1/choices", {"text": "a" * 601}, "at most 600"),
        ("/v1/choices", {"text": "a", "beginning": "a" * 1201}, "at most 1200"),
    ],
)  # fmt: skip
def test_requests_that_are_too_large_are_refused_before_they_wait(
    client: Client, path: str, body: dict[str, Any], words: str
) -> None:
    response = client.post(path, json=body)
    assert response.status_code == 413
    assert words in response.json()["error"]
    assert client.runners["tiny"].batches == []


def test_largest_text_is_translated_with_the_default_limits() -> None:
    config = ServeConfig()
    sentences = [Request("a" * (config.max_bytes // config.max_sentences))] * config.max_sentences
    assert cost_of(Task(), sentences) <= config.cost_limit
    assert cost_of(Task(nbest=10), sentences) > config.cost_limit


def test_text_that_may_have_a_piece_per_character_is_several_times_as_much_work() -> None:
    """But it costs no more, or text without spaces could not be as large as other text."""
    plain, endless = Request("word " * 120), Request("x" * 600)
    assert work_of(Task(), [plain]) == cost_of(Task(), [plain])
    assert 3.5 * work_of(Task(), [plain]) < work_of(Task(), [endless]) < 4 * work_of(Task(), [plain])
    assert cost_of(Task(), [endless]) == cost_of(Task(), [plain])


@pytest.mark.parametrize("required", [Request("dog", "x" * 300), Request("dog", terms=("x" * 150, "y" * 150))])
def test_what_a_translation_must_contain_costs_more_than_the_sentence(required: Request) -> None:
    plain = Request("dog" + "x" * 300)
    for measure in (cost_of, work_of):
        assert 7 * measure(Task(), [plain]) < measure(Task(), [required]) < 8 * measure(Task(), [plain])


def test_cost_grows_with_the_hypotheses_of_the_search() -> None:
    usual = cost_of(Task(), [Request("dog")])
    assert cost_of(Task(), [Request("dog")], 64) == cost_of(Task(beam=2), [Request("dog")], 64) == 16 * usual
    assert cost_of(Task(beam=16), [Request("dog")]) == cost_of(Task(nbest=16), [Request("dog")]) == 4 * usual


def test_cost_of_details_grows_with_the_words_that_a_translation_begins_with() -> None:
    plain, begun = (cost_of(Task(details=True), [Request("a " * 100, "a " * words)]) for words in (0, 100))
    assert begun > 1.9 * plain


def test_cost_of_details_grows_with_the_pairs_of_words() -> None:
    short, long = (cost_of(Task(details=True), [Request("a " * words)]) for words in (100, 200))
    assert long > 3 * short
    assert cost_of(Task(details=True, nbest=10), [Request("a " * 100)]) > 9 * (short - cost_of(Task(), [Request("a")]))


def test_bytes_of_attention_are_those_of_the_weights(model: LoadedModel) -> None:
    found = model.attention(LINES[0], LINES[1])
    assert isinstance(model.engine, TorchEngine)
    config = model.engine.models[0].config
    assert attention_bytes(config, len(found.source), len(found.target)) == 2 * 4 * found.size


def test_details_of_a_sentence_that_is_too_long_are_those_of_its_beginning() -> None:
    tokenizer = make_tokenizer()
    learned = make_model(tokenizer, positions="learned", max_positions=12)
    engine = TorchEngine([learned], tokenizer, DecodingConfig(beam=1), torch.device("cpu"))
    model = LoadedModel(engine, Path(), ("en", "de"), CheckpointRecord("tiny", 0))
    (found,) = worker.answer(model, Batch(Task(details=True), [Request("the cat sees " * 20)]))
    assert isinstance(found, dict), found
    (candidate,) = found["candidates"]
    assert len(tokenizer.encode_source([" ".join(candidate["source_words"])])[0]) <= 11
    assert {len(row) for row in candidate["attention"]} == {len(candidate["source_words"])}
    assert len(candidate["attention"]) == len(candidate["words"])


def test_a_sentence_whose_attention_is_too_large_is_refused_alone(
    client: Client, model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MAX_ATTENTION_BYTES", 200_000)
    short, long = LINES[1], " ".join(LINES * 2)
    found = worker.answer(model, Batch(Task(details=True), [Request(short), Request(long)]))
    assert isinstance(found[0], dict)
    response = client.post("/v1/translate", json={"text": long, "details": True})
    assert response.status_code == 413
    assert "0 MiB" in response.json()["error"]
    assert client.post("/v1/translate", json={"text": long}).status_code == 200


@pytest.mark.parametrize("strategy", ["sample", "mbr"])
def test_a_beam_is_refused_by_a_model_that_draws_samples(model: LoadedModel, strategy: str) -> None:
    search = replace(model.engine.config, strategy=strategy)
    drawing = replace(model, engine=model.engine.with_search(search, 1))
    found = worker.answer(drawing, Batch(Task(beam=8), [Request(LINES[0])]))
    assert found == [Failure("this model does not search with a beam: leave it out", 400)]


def test_samples_depend_on_the_seed_of_the_engine(model: LoadedModel) -> None:
    search = replace(model.engine.config, strategy="sample", nbest=5)
    for seed in (1, 7):
        drawing = replace(model, engine=model.engine.with_search(search, seed))
        (found,) = worker.answer(drawing, Batch(Task(nbest=5), [Request(LINES[0])]))
        assert isinstance(found, dict)
        (expected,) = model.translate([LINES[0]], strategy="sample", nbest=5, seed=seed)
        assert [each["text"] for each in found["candidates"]] == [each.text for each in expected.candidates]


def test_what_waits_for_a_process_goes_on_waiting_and_what_comes_later_is_refused(client: Client) -> None:
    runner = client.runners["tiny"]

    async def crowd() -> list[httpx.Response]:
        runner.held = asyncio.Event()
        first = asyncio.ensure_future(client._request("POST", "/v1/translate", json={"text": LINES[1]}))
        while not runner.batches:
            await asyncio.sleep(0.001)
        runner.ready = False
        later = await client._request("POST", "/v1/translate", json={"text": LINES[1]})
        runner.held.set()
        return [await first, later]

    first, later = client.run(crowd())
    assert (first.status_code, later.status_code) == (200, 503)
    assert later.headers["Retry-After"]


LOOPBACK, ANYWHERE = "127.0.0.1", "0.0.0.0"


@pytest.mark.parametrize(
    ("host", "names", "address", "keys", "accepted"),
    [
        ("127.0.0.1:5000", [], LOOPBACK, False, True),
        ("[::1]:5000", [], "::1", False, True),
        ("LOCALHOST", [], LOOPBACK, False, True),
        ("attacker.example", [], LOOPBACK, False, False),
        ("127.0.0.1.attacker.example", [], LOOPBACK, False, False),
        ("localhost.attacker.example:5000", [], "localhost", False, False),
        ("", [], LOOPBACK, False, False),
        ("translate.example.org", [], LOOPBACK, True, True),
        ("translate.example.org", [], ANYWHERE, False, True),
        ("translate.example.org:443", ["Translate.example.org"], ANYWHERE, True, True),
        ("attacker.example", ["translate.example.org"], ANYWHERE, True, False),
        ("attacker.example", ["*"], LOOPBACK, False, True),
    ],
)  # fmt: skip
def test_hosts_by_which_the_server_may_be_called(
    host: str, names: list[str], address: str, keys: bool, accepted: bool
) -> None:
    assert is_accepted(host.encode(), accepted_hosts(names, address, keys=keys)) == accepted


def test_requests_for_another_host_are_refused(client: Client) -> None:
    assert client.get("/languages").status_code == 200
    refused = client.get("/languages", headers={"Host": "attacker.example"})
    assert refused.status_code == 421
    assert "serve.hosts" in refused.json()["error"]


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ('<a title="x > y">text</a>', ["text"]),
        ("<a title='\">'>text</a>", ["text"]),
        ("<a title=\"it's > this\">text", ["text"]),
        ('<a title="left open>text</a>', ["text"]),
        ('a <b>"quoted"</b> text', ["a ", '"quoted"', " text"]),
        ("<!-- a > b --> text", [" text"]),
        ("<a", ["<a"]),
        ("<a title=\"x > y\" don't>text</a>", ["text"]),
        ("<p title = 'x > y' it's>text</p>", ["text"]),
        ('<b "x>text</b>', ["text"]),
        ("<a href=it's>don't</a>", ["don't"]),
        ('<p =">text</p>', ["text"]),
        ("1 < 2 and 3 > 2", ["1 < 2 and 3 > 2"]),
        ("I <3 <i>you</i>", ["I <3 ", "you"]),
        ("<!doctype html \"x>text", ["text"]),
        ("<?xml a=\"?>text", ["text"]),
        ("<img src='" + "x" * 5000 + "'>text", ["text"]),
        ("text <a " + "x" * 4_000, ["text <a " + "x" * 4_000]),
        ("text <a " + "x" * 5_000, ["text "]),
        ("text <!-- " + "x" * 5_000, ["text "]),
    ],
)  # fmt: skip
def test_quotes_belong_to_tags_as_in_a_browser(html: str, texts: list[str]) -> None:
    assert [html[span.start : span.end] for span in texts_between_tags(html)] == texts
