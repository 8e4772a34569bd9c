"""Marian's training: its own log tells the labels and the seconds of each update."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from protocol import Counts, Job, RefusedError, Result, Stretch, peak_memory, serve

TRAINER = "import sys, pymarian; pymarian.Trainer(sys.argv[1]).train()"
UPDATE = re.compile(r"Cost [\d.]+ \* [\d,]+ @ ([\d,]+) after .* Time ([\d.]+)s")
WORKSPACE = 2048
"""Megabytes set aside for a batch; what a mini-batch of 4,096 words needs."""


def speed(job: Job) -> Result:
    """Train for a stretch of time.

    Marian says of each update how many target labels it had (end marks counted, padding not) and how long it took.
    The source tokens of these sentences follow from the corpus: as many for each label as it has altogether.
    """
    ratio, log = _source_tokens_per_target(Path(job["text"])), Path(job["work"]) / "marian.log"
    process = subprocess.Popen([sys.executable, "-c", TRAINER, f"{_settings(job)} --log {log}"])
    elapsed, memory = 0.0, 0
    stretch = Stretch(job, lambda: elapsed)
    try:
        for labels, seconds in _updates(log, process):
            elapsed += seconds
            memory = peak_memory(process.pid)
            if stretch.update(Counts(round(labels * ratio), labels)):
                break
    finally:
        process.kill()
        process.wait()
    return {**stretch.result(), "memory": memory}


def _updates(log: Path, process: "subprocess.Popen[bytes]") -> Iterator[tuple[int, float]]:
    """Labels and seconds of each update, as they are written."""
    while not log.exists() and process.poll() is None:
        time.sleep(0.1)
    line = ""
    with log.open(encoding="utf-8") as file:
        while True:
            line += file.readline()
            if not line.endswith("\n"):
                if process.poll() is not None:
                    raise RefusedError(f"ended with exit code {process.returncode}")
                time.sleep(0.02)
                continue
            if found := UPDATE.search(line):
                yield int(found[1].replace(",", "")), float(found[2])
            line = ""


def _source_tokens_per_target(text: Path) -> float:
    def tokens(side: str) -> int:
        lines = (text / f"train.{side}").read_text(encoding="utf-8").splitlines()
        return sum(len(line.split()) + 1 for line in lines)

    return tokens("source") / tokens("target")


def _settings(job: Job) -> str:
    """Marian's words for the same model and batches; sentences are sorted by length over the whole of `maxi-batch`."""
    shape, training, text, work = job["model"], job["training"], job["text"], Path(job["work"])
    vocabulary = work / "vocabulary.yml"
    pieces = (Path(text) / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    _write_vocabulary(vocabulary, pieces)
    words = {
        "type": "transformer",
        "train-sets": f"{text}/train.source {text}/train.target",
        "vocabs": f"{vocabulary} {vocabulary}",
        "model": work / "model.npz",
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
        "workspace": WORKSPACE,
        "disp-freq": "1u",
        "disp-label-counts": "true",
        "after-batches": 1_000_000,
        "save-freq": 1_000_000,
        "seed": job["seed"],
    }
    return " ".join(f"--{key} {value}" for key, value in words.items()) + " --sync-sgd --quiet"


def _write_vocabulary(path: Path, pieces: list[str]) -> None:
    """Marian wants its own two marks first; of ours, padding and the start mark are left over and are no trouble."""
    ordered = ["</s>", "<unk>", *(piece for piece in pieces if piece not in ("</s>", "<unk>"))]
    quoted = (piece.replace("\\", "\\\\").replace('"', '\\"') for piece in ordered)
    path.write_text("".join(f'"{piece}": {index}\n' for index, piece in enumerate(quoted)), encoding="utf-8")


if __name__ == "__main__":
    serve({"speed": speed})
