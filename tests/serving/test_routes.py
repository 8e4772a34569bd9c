"""Every route of the server, with good requests and bad ones; a small model runs in this process."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from starlette.testclient import TestClient

from nmt.decoding.load import LoadedModel
from nmt.errors import UserError
from nmt.serving.app import read_keys
from tests.serving.conftest import CONFIG, ThreadModel, served
from tests.unit.small_models import LINES

KEY = "a-long-secret-key"
GOOD = {"q": LINES[0], "source": "en", "target": "de"}
PAGE, OTHER_PAGE = "https://example.org", "https://example.com"
ALLOWED = "Access-Control-Allow-Origin"


def best(model: LoadedModel, line: str) -> str:
    return model.translate([line])[0].text


def error(response: Any) -> str:
    """Return the error of an answer, which is one line."""
    assert set(response.json()) == {"error"}
    message: str = response.json()["error"]
    assert message
    assert "\n" not in message
    return message


def test_v1_translate_answers_with_sentences_at_their_places(client: TestClient, model: LoadedModel) -> None:
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


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        (LINES[0], ""),
        (LINES[0], "the漢 dog"),
        (LINES[0], "the  dog  "),
        ("the\u00a0dog sees", ""),
        ("漢 dog 字字", ""),
    ],
)
def test_details_hold_probabilities_of_words_and_attention(client: TestClient, text: str, beginning: str) -> None:
    asked = {"text": text, "beginnings": [beginning], "details": True}
    (sentence,) = client.post("/v1/translate", json=asked).json()["translations"][0]["sentences"]
    (found,) = sentence["candidates"]
    assert found["source_words"] == text.split()
    assert [word["text"] for word in found["words"]] == found["text"].split()
    assert all(0 < word["probability"] <= 1 for word in found["words"])
    assert [len(row) for row in found["attention"]] == [len(found["source_words"])] * len(found["words"])
    assert [sum(row) for row in found["attention"]] == pytest.approx([1] * len(found["words"]), abs=1e-3)


def test_choices_come_with_probabilities_and_lead_to_translations_that_begin_with_them(client: TestClient) -> None:
    found = client.post("/v1/choices", json={"text": LINES[0], "beginning": "", "count": 5}).json()["choices"]
    assert 1 < len(found) <= 5
    probabilities = [each["probability"] for each in found]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) <= 1 + 1e-6
    word = found[-1]["text"]
    answer = client.post("/v1/translate", json={"text": LINES[0], "beginnings": [f"{word} "]}).json()
    assert answer["translations"][0]["text"].startswith(word)


def test_empty_texts_and_lists_stay_empty(client: TestClient) -> None:
    assert client.post("/v1/translate", json={"text": ""}).json()["translations"] == [{"text": "", "sentences": []}]
    assert client.post("/v1/translate", json={"text": []}).json()["translations"] == []
    assert client.post("/v1/translate", json={"text": " \n "}).json()["translations"][0]["text"] == " \n "


@pytest.mark.parametrize("form", ["json", "data", "params", "curl"])
def test_libretranslate_takes_json_forms_and_queries(client: TestClient, model: LoadedModel, form: str) -> None:
    options: dict[str, Any] = {form: GOOD}
    if form == "curl":  # JSON that curl -d sends
        options = {"content": json.dumps(GOOD), "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    assert client.post("/translate", **options).json() == {"translatedText": best(model, LINES[0])}


def test_libretranslate_lists_alternatives_and_languages(client: TestClient, model: LoadedModel) -> None:
    values = {"q": [LINES[0], ""], "source": "auto", "target": "de", "alternatives": 2}
    answer = client.post("/translate", json=values).json()
    assert answer["translatedText"] == [best(model, LINES[0]), ""]
    expected = dict.fromkeys(each.text for each in model.translate([LINES[0]], nbest=3)[0].candidates)
    assert answer["alternatives"] == [list(expected)[1:], []]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "en"]
    assert client.get("/languages").json()[0] == {"code": "en", "name": "English", "targets": ["de"]}
    assert client.post("/detect", data={"q": "text"}).json()[0]["language"] == "en"


def test_html_keeps_its_tags_and_escapes_the_translation(client: TestClient, model: LoadedModel) -> None:
    html = f"<p title='a > \"b\"'>{LINES[1]} <b>{LINES[3]}</b><!-- {LINES[0]} --></p><td>&nbsp;</td>"
    answer = client.post("/translate", json={**GOOD, "q": html, "format": "html"}).json()
    first, second = best(model, LINES[1]), best(model, LINES[3])
    expected = html.replace(f">{LINES[1]} ", f">{first} ").replace(f">{LINES[3]}<", f">{second}<")
    assert answer["translatedText"] == expected


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/translate", {**GOOD, "q": 3}, 400, "q: "),
        ("/translate", {**GOOD, "q": ["a", {}]}, 400, "q: "),
        ("/translate", {**GOOD, "q": "\0"}, 400, "no text has"),
        ("/translate", {**GOOD, "q": ""}, 400, "q: "),
        ("/translate", {"target": "de"}, 400, "q: Field required"),
        ("/translate", {**GOOD, "format": "pdf"}, 400, "format: "),
        ("/translate", {**GOOD, "alternatives": 99}, 400, "alternatives: "),
        ("/translate", {**GOOD, "target": "xx"}, 400, "no model for these languages"),
        ("/translate", {**GOOD, "source": "auto", "target": "xx"}, 400, "name the source language"),
        ("/v1/translate", {"text": "a", "model": "../../etc/passwd"}, 404, "no such model"),
        ("/v1/translate", {"text": ["a " * 299] * 9, "details": True, "nbest": 10}, 413, "too large"),
        ("/v1/translate", {"text": [""] * 501}, 400, "text: "),
        ("/v1/translate", {"text": "Dog. " * 501}, 413, "more than 500"),
        ("/v1/translate", {"text": "One. Two.", "beginnings": ["x"]}, 400, "single sentence"),
        ("/v1/translate", {"text": "a", "beginnings": ["x", "y"]}, 400, "one text for each"),
        ("/v1/choices", {"text": "a" * 601}, 400, "text: "),
        ("/v1/choices", {"text": "a", "count": 0}, 400, "count: "),
        ("/nowhere", {}, 405, "Method Not Allowed"),
    ],
)  # fmt: skip
def test_bad_fields_are_refused_in_one_line(
    client: TestClient, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    response = client.post(path, content=json.dumps(body))
    assert response.status_code == status
    assert words in error(response)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"[" * 15_000, b'{"text":' + b"9" * 10_000 + b"}", b"\xff\xfe", b'{"text":"\\ud800"}']
)
def test_bodies_that_are_no_object_are_refused(client: TestClient, content: bytes) -> None:
    response = client.post("/v1/translate", content=content)
    assert response.status_code == 400
    assert error(response)


def test_large_requests_are_refused_before_they_are_read(client: TestClient) -> None:
    assert client.post("/v1/translate", content=b"x" * 20_001).status_code == 413
    refused = client.post("/v1/translate", content=iter([b"{}"]))  # of unknown length
    assert (refused.status_code, refused.headers["Connection"]) == (411, "close")


def test_failures_of_the_model_are_answered_and_counted_without_details(
    client: TestClient, running: ThreadModel, capfd: pytest.CaptureFixture[str]
) -> None:
    said = "the secret text of a client"  # not in a line of a call, which a stack that another library prints quotes
    failed, before = 'nmt_requests_total{route="/v1/translate",status="500"}', client.get("/metrics").text
    running.broken = ValueError(said)
    response = client.post("/v1/translate", json={"text": said})
    assert (response.status_code, error(response)) == (500, "the server failed")
    running.broken = None
    assert client.post("/v1/translate", json={"text": "a dog"}).status_code == 200
    logged = capfd.readouterr().err
    assert "ValueError at" in logged
    assert "secret" not in logged
    count = float((re.findall(f"{re.escape(failed)} (.*)", before) or ["0"])[0])  # of all servers of this process
    assert f"{failed} {count + 1}" in client.get("/metrics").text


def test_health_tells_of_a_model_that_is_being_loaded(client: TestClient, running: ThreadModel) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    running.loaded.clear()
    for response in (client.get("/health"), client.post("/translate", json=GOOD)):
        assert response.status_code == 503
        assert response.headers["Retry-After"]


def test_keys_are_asked_for_and_compared(running: ThreadModel) -> None:
    with served(running, keys=[KEY.encode()]) as client:
        assert client.post("/translate", data=GOOD).status_code == 401
        for wrong in ("wrong", KEY[:-1], KEY + "x", "é"):
            assert client.post("/translate", data={**GOOD, "api_key": wrong}).status_code == 403
        for path in ("/detect", "/v1/translate", "/v1/choices"):
            assert client.post(path, json={**GOOD, "text": "a"}).status_code == 401
        for options in (
            {"data": {**GOOD, "api_key": KEY}},
            {"data": GOOD, "headers": {"Authorization": f"Bearer {KEY}"}},
            {"data": GOOD, "headers": {"X-API-Key": KEY}},
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


@pytest.mark.parametrize(
    ("settings", "keys", "status"),
    [({}, [], 400), ({"hosts": ["other.example"]}, [], 200), ({"host": "0.0.0.0"}, [], 200), ({}, [b"k" * 8], 200)],
)
def test_names_that_strangers_could_point_here_are_refused(
    running: ThreadModel, settings: dict[str, Any], keys: list[bytes], status: int
) -> None:
    with served(running, config=replace(CONFIG, **settings), keys=keys) as client:
        found = client.get("/health", headers={"Host": "other.example"})
        assert found.status_code == status
        assert found.json()


@pytest.mark.parametrize(
    ("origins", "allowed"), [([], {}), ([PAGE], {PAGE: PAGE}), (["*"], {PAGE: "*", OTHER_PAGE: "*"})]
)
def test_only_pages_of_allowed_origins_may_read_answers_and_refusals(
    running: ThreadModel, origins: list[str], allowed: dict[str, str]
) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,authorization"}
    with served(running, config=replace(CONFIG, origins=origins)) as client:
        for origin in (PAGE, OTHER_PAGE):
            headers = {"Origin": origin}
            for response in (
                client.options("/translate", headers={**headers, **asked}),
                client.post("/translate", json=GOOD, headers=headers),
                client.post("/v1/translate", content=b"x" * 20_001, headers=headers),
            ):
                assert response.headers.get(ALLOWED) == allowed.get(origin)


def test_models_are_chosen_by_name_and_by_languages(model: LoadedModel) -> None:
    models = [ThreadModel(model, name) for name in ("a", "b")]
    models[0].facts = replace(models[0].facts, source="fr")
    with served(*models, detector=lambda _: {"en": 0.75, "fr": 0.25}) as client:
        assert client.post("/v1/translate", json={"text": "a dog", "model": "a"}).json()["model"] == "a"
        assert [each["default"] for each in client.get("/v1/models").json()["models"]] == [True, False]
        for source in ("en", "auto"):
            client.post("/translate", data={**GOOD, "source": source})
        assert [len(each.batches) for each in models] == [1, 2]
        assert client.post("/detect", data={"q": "a"}).json()[0] == {"confidence": 75.0, "language": "en"}


def test_page_is_served_and_nothing_else(client: TestClient) -> None:
    assert "<!doctype html>" in client.get("/").text.lower()
    for path in ("/../pyproject.toml", "/%2e%2e/app.py", "/page/index.html", "//etc/passwd"):
        assert client.get(path).status_code == 404


def test_answers_in_parallel_equal_answers_in_turn(client: TestClient, running: ThreadModel) -> None:
    def ask(line: str) -> str:
        translated: str = client.post("/v1/translate", json={"text": line}).json()["translations"][0]["text"]
        return translated

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, LINES * 5)) == [best(running.model, line) for line in LINES] * 5
    assert max(map(len, running.batches)) > 1


def test_the_process_of_the_server_does_not_import_torch() -> None:
    program = "import sys, nmt.serving.server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
