"""`nmt serve` with an int8 export for CTranslate2: it answers as the export does, and refuses clearly what it lacks."""

import json
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")
pytest.importorskip("starlette", reason="needs the extra serve")

import nmt
from nmt.cli import main
from nmt.decoding.load import LoadedModel
from tests.integration.test_server import Server, post, start
from tests.unit.small_models import LINES, make_model, make_tokenizer, teach
from tests.unit.tiny_run import write_tiny_run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts servers as the other tests do")


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, d_model=64, d_ff=128, positions="sinusoidal")
    taught = teach(model, tokenizer, 150).eval()  # rounding changes a smaller or random model too much
    run = write_tiny_run(folder / "tiny", taught)
    (folder / "text").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    words = [f"name={run.name}", f"paths.outputs={folder}", f"input={folder / 'text'}", "runtime.threads=1"]
    assert main(["export", *words, "export.quantization=int8", f"export.folder={folder / 'int8'}"]) == 0
    return folder / "int8"


@pytest.fixture(scope="module")
def model(export: Path) -> LoadedModel:
    return nmt.load(export, device="cpu", threads=1)


@pytest.fixture(scope="module")
def server(export: Path) -> Iterator[Server]:
    started = start(export)
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.mark.parametrize("line", LINES)
def test_candidates_and_scores_are_those_of_the_export(server: Server, model: LoadedModel, line: str) -> None:
    # one sentence at a time, because CTranslate2 has one limit of length for all sentences of a batch
    status, answer = post(server, "/v1/translate", {"text": line, "nbest": 3})
    assert status == 200, answer
    candidates = answer["translations"][0]["sentences"][0]["candidates"]
    expected = model.translate([line], nbest=3)[0].candidates
    assert [each["text"] for each in candidates] == [each.text for each in expected]
    assert [each["score"] for each in candidates] == pytest.approx([each.score for each in expected])
    status, answer = post(server, "/translate", {"q": line, "source": "auto", "target": "de", "alternatives": 2})
    assert status == 200, answer
    texts = dict.fromkeys(each.text for each in model.translate([line], nbest=3)[0].candidates)
    assert [answer["translatedText"], *answer["alternatives"]] == list(texts)


def test_libretranslatepy_works_unchanged(server: Server, model: LoadedModel) -> None:
    api = pytest.importorskip("libretranslatepy", reason="needs the extra dev").LibreTranslateAPI(server.url)
    expected = [model.translate([line])[0].text for line in LINES]
    assert [api.translate(line, "en", "de", timeout=60) for line in LINES] == expected


def test_words_have_probabilities_but_no_attention(server: Server) -> None:
    status, answer = post(server, "/v1/translate", {"text": LINES[0], "details": True})
    assert status == 200, answer
    (found,) = answer["translations"][0]["sentences"][0]["candidates"]
    assert found["source_words"] == LINES[0].split()
    assert [word["text"] for word in found["words"]] == found["text"].split()
    assert all(0 < word["probability"] <= 1 for word in found["words"])
    assert "attention" not in found


def test_a_translation_begins_as_asked(server: Server, model: LoadedModel) -> None:
    beginning = model.translate([LINES[2]])[0].text.split()[0][:-1]
    status, answer = post(server, "/v1/translate", {"text": LINES[0], "beginnings": [beginning]})
    assert status == 200, answer
    assert answer["translations"][0]["text"].startswith(beginning)


def test_what_an_export_lacks_is_refused_in_one_line(server: Server) -> None:
    status, answer = post(server, "/v1/choices", {"text": LINES[0]})
    assert (status, answer) == (400, {"error": "model tiny cannot name its next words with engine=ctranslate2"})


def test_the_models_say_what_they_offer(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/v1/models", timeout=60) as response:
        (found,) = json.load(response)["models"]
    assert (found["engine"], found["attention"], found["choices"]) == ("ctranslate2", False, False)


def test_sigterm_ends_the_server_with_0(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    _, errors = server.process.communicate(timeout=60)
    assert server.process.returncode == 0
    assert "Traceback" not in errors
