"""CTranslate2 as an engine of the commands: several hypotheses, constraints, and what it lacks."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config.decoding import DecodingConfig
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translation import Request
from nmt.errors import UserError
from nmt.export import ctranslate2
from nmt.export.ctranslate2_engine import CTranslate2Engine
from tests.export.models import make_trained
from tests.unit.small_models import LINES

pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")


def engines(folder: Path, **search: Any) -> tuple[Engine, Engine]:
    """Return our engine and CTranslate2 with the same model."""
    trained, ours = make_trained("ctranslate2", steps=200)
    ctranslate2.write(folder, trained)
    config, cpu = DecodingConfig(extra_length=30, **search), torch.device("cpu")
    return TorchEngine([ours], trained.tokenizer, config, cpu), CTranslate2Engine(folder, config, cpu)


def test_the_best_of_several_hypotheses_and_its_score_are_ours(tmp_path: Path) -> None:
    ours, theirs = engines(tmp_path, beam=3, nbest=2, alpha=1.2)
    for expected, found in zip(ours.translate(LINES), theirs.translate(LINES), strict=True):
        assert (found.text, len(found.candidates)) == (expected.text, 2)
        assert found.candidates[0].score == pytest.approx(expected.candidates[0].score, abs=0.01)


@pytest.mark.parametrize("ngram", [0, 1])
def test_beginnings_and_repetitions_are_as_ours(tmp_path: Path, ngram: int) -> None:
    # Greedy search: of several hypotheses, CTranslate2 does not count what is forbidden as improbable.
    ours, theirs = engines(tmp_path, beam=1, no_repeat_ngram=ngram)
    requests: list[str | Request] = [*LINES, *(Request(line, "the dog") for line in LINES)]
    expected = [each.text for each in ours.translate(requests)]
    assert [each.text for each in theirs.translate(requests)] == expected
    assert all(text.startswith("the dog") for text in expected[len(LINES) :])
    assert (LINES[2] in expected) == (not ngram)  # it has the same words twice


def test_what_it_lacks_and_a_damaged_export_are_refused(tmp_path: Path) -> None:
    _, theirs = engines(tmp_path)
    with pytest.raises(UserError, match="engine=ctranslate2 cannot require terms"):
        list(theirs.translate([Request(LINES[0], terms=("a",))]))
    with pytest.raises(UserError, match="engine=ctranslate2 has beam search only"):
        theirs.with_search(DecodingConfig(strategy="mbr"), seed=1)
    (tmp_path / "model.bin").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"CTranslate2 cannot load .*: run `make export` again"):
        CTranslate2Engine(tmp_path, DecodingConfig(), torch.device("cpu"))
