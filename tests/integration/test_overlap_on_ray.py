"""Training text that is in the test set is dropped on a cluster of Ray as it is on this machine."""

from pathlib import Path

import pytest

from tests.unit.data.ray.test_engine import needs_ray, prepared, settings, small_chunks

__all__ = ["settings", "small_chunks"]
SHOWN = 40


@needs_ray
@pytest.mark.slow
def test_the_prepared_folder_is_the_same_to_the_byte(settings: list[str], tmp_path: Path) -> None:
    for language in ("en", "de"):
        lines = (tmp_path / f"toy.{language}").read_text(encoding="utf-8").splitlines()[100 : 100 + SHOWN]
        (tmp_path / f"test.{language}").write_text("".join(f"{line.upper()} !\n" for line in lines), encoding="utf-8")
    words = [
        *settings, f"data.test=[{tmp_path}/test.en,{tmp_path}/test.de]", "tokenizer.vocab_size=60",
        "data.drop_overlap=side", "data.overlap_share=0.7",
    ]  # fmt: skip
    alone = prepared(words, "data.corpus=alone", "runtime.workers=1")
    assert prepared(words, "data.corpus=ray", "data.engine=ray", "runtime.workers=2") == alone
    dropped = alone[1]["collect train"][1]["dropped"]
    assert SHOWN * 0.8 < dropped["overlap"] <= SHOWN, "a few are held out for validation"
    assert dropped["overlap of runs"] > 0
