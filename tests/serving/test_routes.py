"""Every route of the server, with good requests and bad ones; a small model runs in this process."""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")

from nmt.decoding.load import LoadedModel
from nmt.errors import ConfigError, UserError
from nmt.serving.fields import read_keys
from tests.serving.harness import CONFIG, Client, ThreadRunner, running, until
from tests.unit.small_models import LINES

KEY = "a-long-secret-key"


def best(model: LoadedModel, line: str) -> str:
    return model.translate([line])[0].text


def error(response: Any) -> str:
    """Return the error of an answer, which is one line."""
    assert set(response.json()) == {"error"}
    message: str = response.json()["error"]
    assert message
    assert "\n" not in message
    assert "Traceback" not in message
    return message


def test_v1_translate_answers_with_sentences_at_their_places(client: Client, model: LoadedModel) -> None:
    text = f"😀 {LINES[1]}.\n\n{LINES[3].capitalize()}!  "
    answer = client.post("/v1/translate", json={"text": text, "nbest": 2}).json()
    assert answer["model"] == "tiny"
    (translation,) = answer["translations"]
    units = text.encode("utf-16-le")
    for sentence in translation["sentences"]:
        assert units[2 * sentence["start"] : 2 * sentence["end"]].decode("utf-16-le") == sentence["source"]
        expected = model.translate([sentence["source"]], nbest=2, beam=3)[0].candidates
        assert sentence["candidates"] == [{"text": each.text, "score": pytest.approx(each.score)} for each in expected]
    first, second = (sentence["candidates"][0]["text"] for sentence in translation["sentences"])
    assert translation["text"] == f"{first}\n\n{second}  "


def test_details_hold_probabilities_of_words_and_attention(client: Client) -> None:
    answer = client.post("/v1/translate", json={"text": LINES[0], "details": True}).json()
    (found,) = answer["translations"][0]["sentences"][0]["candidates"]
    assert found["source_words"] == LINES[0].split()
    assert [word["text"] for word in found["words"]] == found["text"].split()
    assert all(0 < word["probability"] <= 1 for word in found["words"])
    assert len(found["attention"]) == len(found["words"])
    for row in found["attention"]:
        assert sum(row) == pytest.approx(1, abs=1e-3)
        assert len(row) == len(found["source_words"])


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        (LINES[0], "the\tdog"),
        (LINES[0], "漢字 dog"),
        (LINES[0], "the漢 dog"),
        (LINES[0], "the  dog  "),
        ("the\u00a0dog sees", ""),
        ("the\u3000dog sees", ""),
        ("漢 dog 字字", ""),
    ],
)
def test_words_and_attention_agree_around_unknown_characters(client: Client, text: str, beginning: str) -> None:
    asked = {"text": text, "beginnings": [beginning], "details": True}
    (sentence,) = client.post("/v1/translate", json=asked).json()["translations"][0]["sentences"]
    (found,) = sentence["candidates"]
    assert found["source_words"] == text.split()
    assert [word["text"] for word in found["words"]] == found["text"].split()
    assert [len(row) for row in found["attention"]] == [len(found["source_words"])] * len(found["words"])


def test_choices_come_with_probabilities_and_lead_to_translations_that_begin_with_them(client: Client) -> None:
    found = client.post("/v1/choices", json={"text": LINES[0], "beginning": "", "count": 5}).json()["choices"]
    assert 1 < len(found) <= 5
    probabilities = [each["probability"] for each in found]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) <= 1 + 1e-6
    word = found[-1]["text"]
    answer = client.post("/v1/translate", json={"text": LINES[0], "beginnings": [f"{word} "]}).json()
    assert answer["translations"][0]["text"].startswith(word)


def test_empty_texts_and_lists_stay_empty(client: Client) -> None:
    assert client.post("/v1/translate", json={"text": ""}).json()["translations"] == [{"text": "", "sentences": []}]
    assert client.post("/v1/translate", json={"text": []}).json()["translations"] == []
    assert client.post("/v1/translate", json={"text": " \n "}).json()["translations"][0]["text"] == " \n "


@pytest.mark.parametrize("form", ["json", "form", "query"])
def test_libretranslate_takes_json_forms_and_queries(client: Client, model: LoadedModel, form: str) -> None:
    values = {"q": LINES[0], "source": "en", "target": "de"}
    options: dict[str, Any] = {
        "json": {"json": values}, "form": {"data": values}, "query": {"params": values}
    }[form]  # fmt: skip
    assert client.post("/translate", **options).json() == {"translatedText": best(model, LINES[0])}


def test_libretranslate_lists_alternatives_languages_and_settings(client: Client, model: LoadedModel) -> None:
    values = {"q": [LINES[0], ""], "source": "auto", "target": "de", "alternatives": 2}
    answer = client.post("/translate", json=values).json()
    assert answer["translatedText"] == [best(model, LINES[0]), ""]
    expected = dict.fromkeys(each.text for each in model.translate([LINES[0]], nbest=3)[0].candidates)
    assert answer["alternatives"] == [list(expected)[1:], []]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "en"]
    assert client.get("/languages").json()[0] == {"code": "en", "name": "English", "targets": ["de"]}
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/frontend/settings").json()["keyRequired"] is False
    assert client.post("/detect", data={"q": "text"}).json()[0]["language"] == "en"


def test_html_keeps_its_tags_and_escapes_the_translation(client: Client, model: LoadedModel) -> None:
    html = f"<p class='a' title='a > \"b\"'>{LINES[1]} <b>{LINES[3]}</b><!-- {LINES[0]} --></p>"
    answer = client.post("/translate", json={"q": html, "source": "en", "target": "de", "format": "html"}).json()
    first, second = best(model, LINES[1]), best(model, LINES[3])
    assert answer["translatedText"] == html.replace(f">{LINES[1]} ", f">{first} ").replace(
        f">{LINES[3]}<", f">{second}<"
    )


def test_html_keeps_what_only_spells_white_space(client: Client, model: LoadedModel) -> None:
    html = f"<p>&nbsp;</p><p>{LINES[1]}</p><td>&#160; &emsp;</td>"
    answer = client.post("/translate", json={"q": html, "source": "en", "target": "de", "format": "html"}).json()
    assert answer["translatedText"] == html.replace(LINES[1], best(model, LINES[1]))


GOOD = {"q": "a dog", "source": "en", "target": "de"}


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/translate", {**GOOD, "q": 3}, 400, "q must be text"),
        ("/translate", {**GOOD, "q": ["a", {}]}, 400, "q must be text"),
        ("/translate", {**GOOD, "format": "pdf"}, 400, "format is not supported"),
        ("/translate", {**GOOD, "alternatives": 99}, 400, "from 0 to 9"),
        ("/translate", {**GOOD, "alternatives": True}, 400, "whole number"),
        ("/translate", {**GOOD, "q": "\ud800"}, 400, "no text has"),
        ("/v1/translate", {"text": "a", "model": "../../etc/passwd"}, 404, "no such model"),
        ("/translate", {**GOOD, "q": ""}, 400, "missing q"),
        ("/translate", {**GOOD, "target": "xx"}, 400, "target language is not available"),
        ("/translate", {**GOOD, "source": "xx"}, 400, "source language is not supported"),
        ("/suggest", {}, 403, "Suggestions are disabled"),
        ("/v1/translate", {"text": ["a " * 299] * 9, "details": True, "nbest": 10}, 413, "too large"),
        ("/v1/translate", {"text": [""] * 501}, 413, "more than 500"),
        ("/v1/translate", {"text": "Dog. " * 501}, 413, "more than 500"),
        ("/v1/translate", {"text": "a", "terms": [["#" * 21, "x"]]}, 413, "at most 20 words"),
        ("/v1/translate", {"text": "a", "terms": [["a", "x" * 301]]}, 413, "at most 300 characters"),
        ("/v1/choices", {"text": "a" * 601}, 413, "at most 600"),
        ("/v1/translate", {"text": "a", "details": 1}, 400, "true or false"),
        ("/v1/translate", {"text": "One. Two.", "beginnings": ["x"]}, 400, "single sentence"),
        ("/v1/translate", {"text": "a", "beginnings": ["x", "y"]}, 400, "one text for each"),
        ("/v1/translate", {"text": "a", "beginnings": ["x" * 3000]}, 413, "at most 1200"),
        ("/v1/translate", {"text": "a", "terms": [["x"]]}, 400, "pairs of texts"),
        ("/v1/translate", {"text": "a", "terms": [["x", " "]]}, 400, "empty text"),
        ("/v1/translate", {"text": "a", "terms": [["x", "y"], ["x", "z"], ["x", "y"]]}, 400, "two translations"),
        ("/v1/choices", {"text": "a", "count": 0}, 400, "from 1 to 50"),
        ("/nowhere", {}, 404, "Not Found"),
    ],
)  # fmt: skip
def test_bad_fields_are_refused_in_one_line(
    client: Client, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    response = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert response.status_code == status
    assert words in error(response)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"[" * 15_000, b'{"text":' + b"9" * 10_000 + b"}", b"\xff\xfe", b'{"text":"\\u0000"}'],
)  # fmt: skip
def test_bodies_that_are_no_object_are_refused(client: Client, content: bytes) -> None:
    assert client.post("/v1/translate", content=content).status_code == 400


def test_large_requests_are_refused_before_they_are_read(client: Client) -> None:
    assert client.post("/v1/translate", content=b"x" * 20_001).status_code == 413

    async def chunks() -> Any:
        yield b"{}"

    refused = client.post("/v1/translate", content=chunks())  # of unknown length
    assert (refused.status_code, refused.headers["Connection"]) == (411, "close")


def test_sentences_of_clients_that_are_gone_are_not_translated(client: Client) -> None:
    runner, (model,) = client.runners["tiny"], client.models

    async def leave() -> None:
        runner.held = asyncio.Event()
        first = asyncio.ensure_future(client._request("POST", "/v1/translate", json={"text": LINES[1]}))
        await until(lambda: bool(runner.batches))  # the first batch is under way
        gone = asyncio.ensure_future(client._request("POST", "/v1/translate", json={"text": "never translated"}))
        await until(lambda: bool(model.batcher.waiting))
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        runner.held.set()
        await first
        await client._request("POST", "/v1/translate", json={"text": LINES[2]})  # after all that waited

    client.run(leave())
    assert [request.text for batch in runner.batches for request in batch.requests] == [LINES[1], LINES[2]]


def test_failures_of_the_model_are_answered_and_counted_without_details(
    client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    client.runners["tiny"].broken = ValueError("the secret text of a client")
    response = client.post("/v1/translate", json={"text": "the secret text of a client"})
    assert response.status_code == 500
    assert error(response) == "the server failed"
    client.runners["tiny"].broken = None
    assert client.post("/v1/translate", json={"text": "a dog"}).status_code == 200
    logged = capfd.readouterr().err
    assert "ValueError at" in logged
    assert "secret" not in logged
    assert 'nmt_requests_total{route="/v1/translate",status="500"} 1.0' in client.get("/metrics").text


def test_health_tells_of_a_model_that_is_being_loaded(client: Client) -> None:
    client.runners["tiny"].ready = False
    response = client.get("/health")
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert client.get("/v1/models").status_code == 200


def test_keys_are_asked_for_and_compared(model: LoadedModel) -> None:
    values = {"q": "a dog", "source": "en", "target": "de"}
    with running(Client({"tiny": ThreadRunner(model)}, CONFIG, [KEY.encode()])) as client:
        assert client.post("/translate", data=values).status_code == 400  # as LibreTranslate answers
        for wrong in ("wrong", KEY[:-1], KEY + "x", "é"):
            assert client.post("/translate", data={**values, "api_key": wrong}).status_code == 403
        for path, status in {"/translate": 400, "/detect": 400, "/v1/translate": 401, "/v1/choices": 401}.items():
            assert client.post(path, json={**values, "text": "a"}).status_code == status
        for options in (
            {"data": {**values, "api_key": KEY}},
            {"data": values, "headers": {"Authorization": f"Bearer {KEY}"}},
            {"data": values, "headers": {"X-API-Key": KEY}},
        ):
            assert client.post("/translate", **options).status_code == 200
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("key", ["schlüssel-1", "secret\tkey", "short"])
def test_keys_that_no_client_can_send_are_refused_at_the_start(tmp_path: Path, key: str) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n{key}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"^serve\.key_file=.*keys"):
        read_keys(str(file))
    file.write_text(f"{KEY}\n\n", encoding="utf-8")
    assert read_keys(str(file)) == [KEY.encode()]


def test_the_file_of_keys_may_be_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "keys").write_text(f"{KEY}\n", encoding="utf-8")
    assert read_keys("~/keys") == [KEY.encode()]


def preflight(client: Client, origin: str) -> Any:
    """Ask what a browser asks before a page sends JSON and a key."""
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,authorization"}
    return client.request("OPTIONS", "/translate", headers={"Origin": origin, **asked})


PAGE, OTHER_PAGE = "https://example.org", "https://example.com"
ALLOWED = "Access-Control-Allow-Origin"


def test_pages_of_other_origins_are_not_allowed_by_default(client: Client) -> None:
    refused = preflight(client, PAGE)
    assert refused.status_code == 405
    plain = client.get("/languages", headers={"Origin": PAGE})
    assert not [name for each in (refused, plain) for name in each.headers if name.startswith("access-control")]


def test_pages_of_allowed_origins_may_read_answers_and_refusals(model: LoadedModel) -> None:
    config = replace(CONFIG, origins=[PAGE, "http://localhost:8080"])
    with running(Client({"tiny": ThreadRunner(model)}, config, [KEY.encode()])) as client:
        allowed, refused = preflight(client, PAGE), preflight(client, OTHER_PAGE)
        assert (allowed.status_code, allowed.headers[ALLOWED]) == (200, PAGE)
        assert {"authorization", "content-type"} <= set(
            allowed.headers["Access-Control-Allow-Headers"].lower().split(", ")
        )
        assert (refused.status_code, ALLOWED in refused.headers) == (400, False)
        for key, origin, status in ((KEY, PAGE, 200), ("", PAGE, 400), (KEY, OTHER_PAGE, 200), ("", OTHER_PAGE, 400)):
            values = {"q": LINES[0], "source": "en", "target": "de", "api_key": key}
            answer = client.post("/translate", json=values, headers={"Origin": origin})
            assert answer.status_code == status
            assert answer.headers.get(ALLOWED) == (PAGE if origin == PAGE else None)
            assert "Origin" in answer.headers["Vary"]
        too_large = client.post("/translate", content=b"x" * 20_001, headers={"Origin": PAGE})
        assert (too_large.status_code, too_large.headers[ALLOWED]) == (413, PAGE)


def test_pages_of_all_origins_are_allowed_only_explicitly(model: LoadedModel) -> None:
    with running(Client({"tiny": ThreadRunner(model)}, replace(CONFIG, origins=["*"]))) as client:
        for answer in (preflight(client, OTHER_PAGE), client.get("/languages", headers={"Origin": OTHER_PAGE})):
            assert (answer.status_code, answer.headers[ALLOWED]) == (200, "*")
            assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["example.org", "https://example.org/", "https://Example.org", "https://a b", "", "null"]
)
def test_origins_that_no_browser_sends_are_refused_as_settings(origin: str) -> None:
    with pytest.raises(ConfigError, match=r"serve\.origins=.* must be an origin"):
        replace(CONFIG, origins=[origin])


def test_models_are_chosen_by_name_and_by_languages(model: LoadedModel) -> None:
    runners = {name: ThreadRunner(model, name) for name in ("a", "b")}
    runners["a"].facts = replace(runners["a"].facts, source="fr")
    with running(Client(runners, CONFIG)) as client:
        assert client.post("/v1/translate", json={"text": "a dog", "model": "a"}).json()["model"] == "a"
        assert [each["default"] for each in client.get("/v1/models").json()["models"]] == [True, False]
        client.post("/translate", data={"q": "a dog", "source": "en", "target": "de"})
        assert [len(runner.batches) for runner in client.runners.values()] == [1, 1]
        assert client.post("/detect", data={"q": "a"}).status_code == 501


def test_terms_are_required_only_where_their_source_occurs(client: Client) -> None:
    body = {"text": "A dog sees. A cat sees.", "terms": [["dog", "Hund"], ["ca", "Kat"]]}
    client.post("/v1/translate", json=body)
    found = {request.text: request.terms for request in client.runners["tiny"].batches[-1].requests}
    assert found == {"A dog sees.": ("Hund",), "A cat sees.": ()}


@pytest.mark.parametrize(("strategy", "offered"), [("sample", False), ("mbr", False), ("beam", True)])
def test_models_that_draw_samples_offer_no_terms(model: LoadedModel, strategy: str, offered: bool) -> None:
    search = replace(model.engine.config, strategy=strategy)
    searching = replace(model, engine=model.engine.with_search(search, 1))
    with running(Client({"tiny": ThreadRunner(searching)}, CONFIG)) as client:
        (described,) = client.get("/v1/models").json()["models"]
        assert described["terms"] == offered
        response = client.post("/v1/translate", json={"text": "A dog sees.", "terms": [["cat", "Kat"]]})
        assert (response.status_code == 200) == offered
        assert offered or "cannot require terms" in error(response)


def test_a_request_that_the_model_refuses_does_not_harm_those_beside_it(client: Client, model: LoadedModel) -> None:
    async def crowd() -> list[Any]:
        bodies = [{"text": LINES[1]}, {"text": LINES[1], "terms": [["dog", "\u2603"]]}, {"text": LINES[1]}]
        return await asyncio.gather(*(client._request("POST", "/v1/translate", json=body) for body in bodies))

    first, refused, last = client.run(crowd())
    assert len(client.runners["tiny"].batches[-1].requests) > 1
    assert refused.status_code == 400
    assert "cannot write" in error(refused)
    for response in (first, last):
        assert response.json()["translations"][0]["text"] == best(model, LINES[1])


def test_page_is_served_from_fixed_names(client: Client) -> None:
    assert "<!doctype html>" in client.get("/").text.lower()
    for path in ("/../pyproject.toml", "/%2e%2e/app.py", "/page/index.html", "//etc/passwd"):
        assert client.get(path).status_code == 404


def test_answers_in_parallel_equal_answers_in_turn(client: Client, model: LoadedModel) -> None:
    async def crowd() -> list[str]:
        ask = [client._request("POST", "/v1/translate", json={"text": line}) for line in LINES * 5]
        return [each.json()["translations"][0]["text"] for each in await asyncio.gather(*ask)]

    assert client.run(crowd()) == [best(model, line) for line in LINES] * 5
    assert max(len(batch.requests) for batch in client.runners["tiny"].batches) > 1


def test_the_process_of_the_server_does_not_import_torch() -> None:
    program = "import sys, nmt.serving.server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
