"""The tutorial's commands and rows of Table 3; `.ci/wheel` runs the whole demo."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.integration.toy import environment, run

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    return [f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs"]


def test_rows_of_table_3_are_trained_and_scored(places: list[str]) -> None:
    quick = ["training.steps=40", "decoding.beam=1", "decoding.extra_length=0"]
    done = run(["table3", *places, "table3.scale=small", "table3.rows=[base,a1]", *quick])
    assert done.returncode == 0, done.stderr
    for row in ("base", "a1"):
        assert any(f" {row} " in line for line in done.stdout.splitlines()), done.stdout


SMALL = (
    "model.layers=1 model.d_model=32 model.d_ff=64 model.heads=2 training.steps=40 training.warmup_steps=10 "
    "training.batch_tokens=400 training.valid_every=20 training.save_every=10 training.valid_sentences=8 "
    "tokenizer.vocab_size=120 averaging.last=2 data.hold_out=0.05 runtime.device=cpu runtime.threads=1"
)
"""Settings that make the commands of the tutorial quick."""


def test_the_tutorial_goes_from_two_files_to_a_served_model(corpus: Path, tmp_path: Path) -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL))
    shutil.copytree(corpus, tmp_path, dirs_exist_ok=True)
    shutil.copy(corpus / "test.en", tmp_path / "news.en")
    programs = shlex.quote(str(Path(sys.executable).parent))
    own = f"experiment=own {SMALL} paths.data={tmp_path}/data paths.outputs={tmp_path}/outputs"
    for command in blocks.splitlines():
        if "make serve" in command:
            continue
        here = command.replace(".venv/bin", programs).replace("make ", f"make BIN={programs} READY= ")
        here = re.sub(r"(?<![\w/])(train|news)\.(en|de)", rf"{tmp_path}/\1.\2", here).replace("experiment=own", own)
        done = subprocess.run(
            ["bash", "-c", here], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
    scores = json.loads((tmp_path / "outputs" / "own" / "eval" / "test.json").read_text())
    assert 10 < scores["sentences"] < 60
    assert (tmp_path / "outputs" / "own" / "report.html").exists()
    assert len((tmp_path / "news.de").read_text().splitlines()) == 40
    assert translated(["serve", *own.split(), "serve.port=0"], "the old man sees a tree")


def translated(command: list[str], line: str) -> str:
    """Return a translation by the server that a command starts."""
    words = [sys.executable, "-m", "nmt", *command]
    server = subprocess.Popen(words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        address = server.stdout.readline().rsplit(maxsplit=1)[-1]
        body = json.dumps({"q": line, "source": "en", "target": "de"}).encode()
        request = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(json.load(answer)["translatedText"])
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
