"""Training with noise as a user runs it: shown by `nmt batch`, and refused in one line."""

from pathlib import Path

from nmt.text.tokenizer import Tokenizer
from tests.integration.toy import call


def test_batch_prints_the_pieces_that_noise_makes(settings: list[str]) -> None:
    dropout = ["noise.bpe_dropout=0.3"]
    clean, noisy = call(["batch", *settings, "batch.step=3"]), call(["batch", *settings, *dropout, "batch.step=3"])
    assert noisy.returncode == 0, noisy.stderr
    assert noisy.stderr == clean.stderr
    folder = next(Path(each.split("=")[1]) for each in settings if each.startswith("paths.data="))
    tokenizer = Tokenizer.load(folder / "toy")
    text = [line.replace("\t", "\t▁") for line in clean.stdout.splitlines()]
    shown = [line.replace(" ", "").replace("▁", " ") for line in noisy.stdout.splitlines()]
    assert shown == [f" {line}".replace("▁", " ") for line in text]
    pieces = [part for line in noisy.stdout.splitlines() for part in line.replace("\t", " ").split(" ")]
    assert len(pieces) > sum(map(len, tokenizer.encode_source([part for line in text for part in line.split("\t▁")])))
