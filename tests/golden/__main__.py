"""Make the golden checkpoint of today's format: python -m tests.golden

It is made once for each format, by the code that wrote it first, and kept for ever: later code must load it.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

from nmt.runs.checkpoint import FORMAT
from tests.integration.toy import call, pairs

HOME = Path(__file__).parent
KEPT_AT, END = 4, 6
"""The step of the checkpoint that is kept, and the one that training goes on to."""
SETTINGS = [
    "data=files", "data.corpus=toy", "name=golden", "paths.data=data", "paths.outputs=outputs",
    *(f"data.{split}=[{split}.en,{split}.de]" for split in ("train", "valid", "test")),
    "data.max_pieces=60", "tokenizer.vocab_size=56", "model.layers=1", "model.d_model=8", "model.d_ff=8",
    "model.heads=1", "training.batch_tokens=200", "training.warmup_steps=3", "training.learning_rate=1e-2",
    "training.valid_every=2", "training.valid_sentences=0", "training.save_every=2", "training.log_every=1",
    "averaging.last=1", "runtime.threads=1", "runtime.workers=1", "runtime.device=cpu", "runtime.precision=fp32",
]  # fmt: skip


def main() -> None:
    """Prepare, train, keep a checkpoint, and note what training on from it comes to."""
    target = HOME / f"format-{FORMAT}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for seed, (split, count) in enumerate({"train": 40, "valid": 6, "test": 6}.items()):
            lines = pairs(count, seed)
            for side, language in enumerate(("en", "de")):
                Path(f"{split}.{language}").write_text("".join(pair[side] + "\n" for pair in lines), encoding="utf-8")
        for stage, steps in (("data", KEPT_AT), ("train", KEPT_AT)):
            done = call([stage, *SETTINGS, f"training.steps={steps}"])
            assert done.returncode == 0, done.stderr
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree("data/toy", target / "data" / "toy", ignore=shutil.ignore_patterns(".lock"))
        kept = Path("outputs/golden/checkpoints") / f"step-{KEPT_AT:08}"
        shutil.copytree(kept, target / "outputs" / "golden" / "checkpoints" / kept.name)
        done = call(["train", *SETTINGS, f"training.steps={END}"])
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in Path("outputs/golden/metrics.jsonl").read_text().splitlines()]
        losses = {event["step"]: event["loss"] for event in events if event["event"] == "train"}
        (target / "losses.json").write_text(json.dumps(losses) + "\n")


if __name__ == "__main__":
    main()
