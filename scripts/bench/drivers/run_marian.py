"""Train with Marian, whose log gives the labels and the seconds of each update."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from protocol import Counts, Job, Measurement, RefusedError, Result, peak_memory, serve

TRAINER = "import sys, pymarian; pymarian.Trainer(sys.argv[1]).train()"
UPDATE = re.compile(r"Cost [\d.]+ \* [\d,]+ @ ([\d,]+) after .* Time ([\d.]+)s")
WORKSPACE_MB = 2048
"""Memory that Marian allocates in advance: enough for a batch of 4,096 tokens."""


def speed(job: Job) -> Result:
    """Measure the speed of training.

    Marian logs the target labels of each update (with end marks, without padding) and its time. Source tokens are
    estimated from the labels, with the ratio of source to target tokens in the whole corpus.
    """
    ratio, log = _source_tokens_per_target(Path(job["text"])), Path(job["folder"]) / "marian.log"
    process = subprocess.Popen([sys.executable, "-c", TRAINER, f"{_settings(job)} --log {log}"])
    elapsed, memory = 0.0, 0
    measurement = Measurement(job, lambda: elapsed)
    try:
        for labels, seconds in _updates(log, process):
            elapsed += seconds
            memory = peak_memory(process.pid)
            if measurement.update(Counts(round(labels * ratio), labels)):
                break
    finally:
        process.kill()
        process.wait()
    return {**measurement.result(), "memory": memory}


def _updates(log: Path, process: "subprocess.Popen[bytes]") -> Iterator[tuple[int, float]]:
    """Yield the labels and seconds of each update while Marian writes its log."""
    while not log.exists() and process.poll() is None:
        time.sleep(0.1)
    line = ""
    with log.open(encoding="utf-8") as file:
        while True:
            line += file.readline()
            if not line.endswith("\n"):
                if process.poll() is not None:
                    raise RefusedError(f"Marian ended with exit code {process.returncode}")
                time.sleep(0.02)
                continue
            if match := UPDATE.search(line):
                yield int(match[1].replace(",", "")), float(match[2])
            line = ""


def _source_tokens_per_target(text: Path) -> float:
    def tokens(side: str) -> int:
        lines = (text / f"train.{side}").read_text(encoding="utf-8").splitlines()
        return sum(len(line.split()) + 1 for line in lines)

    return tokens("source") / tokens("target")


def _settings(job: Job) -> str:
    """Return Marian's options for the same model and batches; it sorts each `maxi-batch` by length."""
    shape, training, text, folder = job["model"], job["training"], job["text"], Path(job["folder"])
    vocabulary = folder / "vocabulary.yml"
    pieces = (Path(text) / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    _write_vocabulary(vocabulary, pieces)
    options = {
        "type": "transformer",
        "train-sets": f"{text}/train.source {text}/train.target",
        "vocabs": f"{vocabulary} {vocabulary}",
        "model": folder / "model.npz",
        "dim-emb": shape["d_model"],
        "enc-depth": shape["layers"],
        "dec-depth": shape["layers"],
        "transformer-heads": shape["heads"],
        "transformer-dim-ffn": shape["d_ff"],
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-dropout": shape["dropout"],
        "label-smoothing": training["label_smoothing"],
        "tied-embeddings-all": "true",
        "optimizer-params": f"{training['adam_beta1']} {training['adam_beta2']} {training['adam_eps']}",
        "learn-rate": 0.0003,
        "lr-warmup": training["warmup_steps"],
        "cost-type": "ce-sum",
        "mini-batch": 1000,
        "mini-batch-words": training["batch_tokens"],
        "maxi-batch": 1000,
        "maxi-batch-sort": "trg",
        "max-length": 257,
        "cpu-threads": job["threads"],
        "workspace": WORKSPACE_MB,
        "disp-freq": "1u",
        "disp-label-counts": "true",
        "after-batches": 1_000_000,
        "save-freq": 1_000_000,
        "seed": job["seed"],
    }
    return " ".join(f"--{key} {value}" for key, value in options.items()) + " --sync-sgd --quiet"


def _write_vocabulary(path: Path, pieces: list[str]) -> None:
    """Write the vocabulary with the two marks that Marian requires first; it ignores nmt's padding and start marks."""
    ordered = ["</s>", "<unk>", *(piece for piece in pieces if piece not in ("</s>", "<unk>"))]
    quoted = (piece.replace("\\", "\\\\").replace('"', '\\"') for piece in ordered)
    path.write_text("".join(f'"{piece}": {index}\n' for index, piece in enumerate(quoted)), encoding="utf-8")


if __name__ == "__main__":
    serve({"speed": speed})
