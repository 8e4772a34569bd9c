"""The stage `old`: corpora and runs that earlier versions of this project wrote are loaded by today's code.

The versions are chosen by the subjects of their commits. Each prepares a corpus and trains a tiny run with its own
code; then today's must evaluate, translate with and resume that run, without preparing the corpus again.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from test_all.small_text import sentence_pairs, write_pairs
from test_all.stages import ROOT, Context, SkipStage, StageError

KEPT_AT, END = 4, 6
"""The last step of the old code, and that of today's."""
SETTINGS = (
    "data=files", "data.corpus=toy", "name=old", "paths.data=data", "paths.outputs=outputs",
    *(f"data.{split}=[{split}.en,{split}.de]" for split in ("train", "valid", "test")),
    "data.max_pieces=100", "tokenizer.vocab_size=120", "model.layers=1", "model.d_model=8", "model.d_ff=8",
    "model.heads=1",
    "training.batch_tokens=200", "training.warmup_steps=3", "training.learning_rate=1e-2", "training.valid_every=2",
    "training.valid_sentences=0", "training.save_every=2", "training.log_every=1", "averaging.last=1",
    "decoding.extra_length=2", "runtime.threads=1", "runtime.workers=1", "runtime.device=cpu", "runtime.precision=fp32",
)  # fmt: skip

PREPARED_AGAIN = re.compile(r"^(?:collect|tokenizer|encode)\b.*: started$", re.MULTILINE)
"""Steps of `nmt data` that write the text, the tokenizer or the tokens; later versions may have added others."""


@dataclass(frozen=True)
class Version:
    """A version of this project, named by a commit, with the settings of its run beyond SETTINGS."""

    subject: str
    settings: tuple[str, ...] = ()


VERSIONS = (
    Version("Keep a golden checkpoint of each format, and refuse formats that never were"),
    Version("Type the records of a corpus and register its filters"),
    Version(
        "Train on mixtures of corpora",
        ("data.mixture.other.train=[other.en,other.de]", "data.mixture.other.tag=@other@"),
    ),
    Version(
        "Train the demo in half as many steps, with Muon",
        (
            "training.optimizer=muon",
            "model.norm_placement=pre",
            "model.positions=rotary",
            "noise.bpe_dropout_source=0.1",
        ),
    ),
)


def run_old(context: Context) -> None:
    """Make a run with each old version, and use it with today's code."""
    if _git("rev-parse", "--is-shallow-repository").strip() != "false":
        raise SkipStage("the clone has no history (git fetch --unshallow)")
    commits = {line[41:]: line[:40] for line in _git("log", "--format=%H %s").splitlines()}
    if missing := [version.subject for version in VERSIONS if version.subject not in commits]:
        raise SkipStage(f"the history of this clone lacks the commits {missing}")
    for version in VERSIONS:
        context.say(version.subject)
        _check(context, version, commits[version.subject])


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SkipStage("this is no clone of the repository")
    return done.stdout


def _check(context: Context, version: Version, commit: str) -> None:
    """Prepare and train with the code of a commit, then score, translate and train on with today's."""
    folder = context.folder / commit[:10]
    packed = context.folder / "code.tar"
    context.run("git", "archive", "--output", packed, commit, "src", "conf")
    shutil.unpack_archive(packed, folder / "code")
    for seed, (split, count) in enumerate({"train": 60, "valid": 6, "test": 6, "other": 30}.items()):
        write_pairs(folder / f"{split}.en", folder / f"{split}.de", sentence_pairs(count, seed + 1))
    old, new = ({"PYTHONPATH": str(home / "src"), "OMP_NUM_THREADS": "1"} for home in (folder / "code", ROOT))

    def nmt(environment: dict[str, str], command: str, *words: str, text: str = "") -> str:
        settings = (*SETTINGS, *version.settings, *words)
        return context.run(
            sys.executable, "-m", "nmt", command, *settings, cwd=folder, environment=environment, text=text
        )

    nmt(old, "data")
    nmt(old, "train", f"training.steps={KEPT_AT}")
    nmt(new, "eval", "checkpoint=last")
    nmt(new, "translate", "checkpoint=last", text="the man sees a dog\n")
    if again := PREPARED_AGAIN.findall(nmt(new, "data")):
        raise StageError(f"the corpus of {version.subject!r} was prepared again: {again}")
    nmt(new, "train", f"training.steps={END}")
    check_steps(folder / "outputs" / "old" / "metrics.jsonl")


def check_steps(metrics: Path) -> None:
    """Raise StageError unless a run trained each step once, so that it was resumed and not begun again."""
    events = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    steps = [event["step"] for event in events if event["event"] == "train"]
    if steps != list(range(1, END + 1)):
        raise StageError(f"the run was not resumed: it trained the steps {steps}")
