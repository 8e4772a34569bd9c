"""The benchmark measures nmt, and names a missing peer."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.toy import pairs

BENCH = Path(__file__).parents[2] / "scripts" / "bench"


@pytest.mark.slow
def test_measures_nmt_and_names_a_missing_peer(tmp_path: Path) -> None:
    words = ["--shapes=tiny", "--batch-tokens=600", "--rounds=1", "--seconds=0.2", "--warmup=0", "--threads=1"]
    words += ["--engines=ours,eole", "--precisions=fp32", f"--peers={tmp_path}"]
    words += ["data=files", "data.corpus=toy", f"paths.data={tmp_path}/data", "tokenizer.vocab_size=90"]
    for seed, (split, count) in enumerate((("train", 400), ("valid", 20), ("test", 20))):
        for language, lines in zip(("en", "de"), zip(*pairs(count, seed), strict=True), strict=True):
            (tmp_path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        words.append(f"data.{split}=[{tmp_path}/{split}.en,{tmp_path}/{split}.de]")
    command = [sys.executable, str(BENCH), "train", *words, "runtime.workers=1"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "| nmt | fp32 | " in printed
    assert "eole fp32: not installed: scripts/bench setup eole" in printed
