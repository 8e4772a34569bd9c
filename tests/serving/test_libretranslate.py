"""LibreTranslate's API as its clients use it: the requests and answers that the project's own tests check, and more."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from nmt.decoding.loaded_model import LoadedModel
from nmt.serving import detection
from nmt.serving.detection import Detector, detected, load_detector
from nmt.serving.errors import RequestError
from tests.serving.harness import CONFIG, Client, ThreadRunner, running
from tests.unit.small_models import LINES

GOOD = {"q": LINES[0], "source": "en", "target": "de"}


def test_a_form_is_translated(client: Client) -> None:
    response = client.post("/translate", data={**GOOD, "format": "text"})
    assert response.status_code == 200
    assert "translatedText" in response.json()


def test_the_language_of_a_form_is_detected(client: Client) -> None:
    response = client.post("/detect", data={"q": "Hello"})
    assert response.status_code == 200
    assert {"confidence", "language"} <= set(response.json()[0])


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_languages_have_codes_names_and_targets(client: Client, method: str) -> None:
    response = client.request(method, "/languages")
    assert response.status_code == 200
    assert all({"code", "name", "targets"} <= set(each) for each in response.json())


@pytest.mark.parametrize(("method", "path"), [("GET", "/detect"), ("GET", "/translate"), ("POST", "/health")])
def test_other_methods_are_refused(client: Client, method: str, path: str) -> None:
    assert client.request(method, path).status_code == 405


@pytest.mark.parametrize("path", ["/translate", "/detect"])
def test_requests_without_fields_are_refused(client: Client, path: str) -> None:
    response = client.post(path)
    assert response.status_code == 400
    assert response.json() == {"error": "Invalid request: missing q parameter"}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"q": ""}, "missing q parameter"),
        ({"q": []}, "missing q parameter"),
        ({"source": ""}, "missing source parameter"),
        ({"target": ""}, "missing target parameter"),
        ({"target": None}, "missing target parameter"),
        ({"source": "xx"}, "source language is not supported"),
        ({"target": "xx"}, "target language is not available"),
        ({"q": "A dog. " * 21}, "more than 20"),
    ],
)  # fmt: skip
def test_bad_fields_are_refused_with_400(client: Client, changes: dict[str, Any], error: str) -> None:
    response = client.post("/translate", json={**GOOD, **changes})
    assert response.status_code == 400
    assert error in response.json()["error"]


def test_an_empty_format_is_text(client: Client) -> None:
    expected = client.post("/translate", json=GOOD).json()
    assert client.post("/translate", json={**GOOD, "format": ""}).json() == expected


def test_suggestions_are_disabled(client: Client) -> None:
    response = client.post("/suggest", json={**GOOD, "s": "ein Hund"})
    assert response.status_code == 403
    assert "disabled" in response.json()["error"]
    assert client.get("/frontend/settings").json()["suggestions"] is False


@pytest.mark.parametrize("character", ["a", "é", "猫"])
def test_texts_up_to_the_limit_of_characters_fit_as_clients_write_them(client: Client, character: str) -> None:
    limit = client.get("/frontend/settings").json()["charLimit"]
    content = json.dumps({**GOOD, "q": character * (limit - 50)})  # the other fields need some bytes, too
    response = client.post("/translate", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 200, response.json()


def detect_by_letters(text: str) -> Mapping[str, float]:
    """Return how probable English and French are: by their shares of the letters k and q."""
    english, french = text.count("k"), text.count("q")
    return {code: count / max(1, english + french) for code, count in (("en", english), ("fr", french))}


@contextmanager
def several_sources(model: LoadedModel, detector: Detector | None) -> Iterator[Client]:
    """Serve a model a from French, and a model b from English."""
    with running(Client({"a": ThreadRunner(model), "b": ThreadRunner(model)}, CONFIG, detector=detector)) as client:
        client.runners["a"].facts = replace(client.runners["a"].facts, source="fr")
        yield client


def test_a_source_language_must_be_named_if_models_read_several(model: LoadedModel) -> None:
    with several_sources(model, None) as client:
        refused = client.post("/translate", json={**GOOD, "source": "auto"})
        assert refused.status_code == 400
        assert "name the source language" in refused.json()["error"]
        assert client.runners["a"].batches == []
        assert client.post("/translate", json=GOOD).status_code == 200


@pytest.mark.parametrize(("text", "language", "used"), [("kkkq", "en", "b"), ("qqqk", "fr", "a")])
def test_a_detected_language_chooses_the_model(model: LoadedModel, text: str, language: str, used: str) -> None:
    with several_sources(model, detect_by_letters) as client:
        expected = {"confidence": 75.0, "language": language}
        assert client.post("/detect", json={"q": text}).json()[0] == expected
        answer = client.post("/translate", json={"q": text, "source": "auto", "target": "de"}).json()
        assert answer["detectedLanguage"] == expected
        assert [name for name, runner in client.runners.items() if runner.batches] == [used]
        answer = client.post("/translate", json={"q": [text, ""], "source": "auto", "target": "de"}).json()
        assert answer["detectedLanguage"] == [expected] * 2


def test_only_source_languages_of_the_target_are_detected(model: LoadedModel) -> None:
    with several_sources(model, detect_by_letters) as client:
        client.runners["a"].facts = replace(client.runners["a"].facts, target="it")
        answer = client.post("/translate", json={"q": "qqq", "source": "auto", "target": "de"}).json()
        assert answer["detectedLanguage"] == {"confidence": 0.0, "language": "en"}
        refused = client.post("/translate", json={"q": "qqq", "source": "auto", "target": "xx"})
        assert (refused.status_code, "target language" in refused.json()["error"]) == (400, True)


def test_the_detector_knows_languages_and_their_regions() -> None:
    pytest.importorskip("py3langid", reason="needs the extra language")
    detector = load_detector()
    german, english = "Ein Mann geht mit seinem Hund spazieren.", "A man is walking his dog."
    for text, expected in ((german, "de-AT"), (english, "en")):
        first, second = detected(detector, [text], ["en", "de-AT"], 400)
        assert first["language"] == expected
        assert 100 >= first["confidence"] > 50 > second["confidence"] >= 0


def test_without_the_package_only_a_single_language_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "find_spec", lambda _: None)
    assert load_detector() is None
    assert detected(None, ["a"], ["en", "en"], 400) == [{"confidence": 0.0, "language": "en"}]
    with pytest.raises(RequestError, match="name the source language") as refused:
        detected(None, ["a"], ["en", "de"], 501)
    assert refused.value.status == 501
