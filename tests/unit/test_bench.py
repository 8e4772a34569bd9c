"""The benchmark measures nmt, names a missing peer, and continues where it was interrupted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.toy import pairs

BENCH = Path(__file__).parents[2] / "scripts" / "bench"


@pytest.mark.slow
def test_measures_nmt_names_a_missing_peer_and_resumes(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    words = ["--shapes=tiny", "--batch-tokens=600", "--rounds=1", "--seconds=0.2", "--warmup=0", "--threads=1"]
    words += ["--engines=ours,eole", "--precisions=fp32", f"--peers={tmp_path}", f"--record={record}", "--resume"]
    words += ["data=files", "data.corpus=toy", f"paths.data={tmp_path}/data", "tokenizer.vocab_size=90"]
    for seed, (split, count) in enumerate((("train", 400), ("valid", 20), ("test", 20))):
        for language, lines in zip(("en", "de"), zip(*pairs(count, seed), strict=True), strict=True):
            (tmp_path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        words.append(f"data.{split}=[{tmp_path}/{split}.en,{tmp_path}/{split}.de]")
    command = [sys.executable, str(BENCH), "train", *words, "runtime.workers=1"]
    printed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert "eole fp32: not installed: scripts/bench setup eole" in printed[0]
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    _, ours, missing, missing_again = rows  # the second time, only the missing peer is tried again
    rate = (ours["source_tokens"] + ours["target_tokens"]) / ours["seconds"]
    assert f"| nmt | fp32 | {rate:,.0f} |" in printed[0]
    assert printed[1] == printed[0]
    assert missing["refused"] == missing_again["refused"]
