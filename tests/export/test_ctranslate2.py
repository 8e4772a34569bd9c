"""Exports for CTranslate2, compared with our own model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config.decoding import DecodingConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translation import Request
from nmt.errors import UserError
from nmt.export import ctranslate2
from nmt.export.ctranslate2_engine import CTranslate2Engine
from nmt.text.special import EOS
from tests.export.models import make_trained
from tests.unit.small_models import LINES, log_probabilities, make_tokenizer

pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")
CPU = torch.device("cpu")
SHAPES: list[dict[str, Any]] = [
    {},
    {"tie_embeddings": False},
    {"norm_placement": "pre"},
    {"norm": "rms"},
    {"activation": "gelu"},
    {"activation": "swish"},
    {"activation": "swiglu"},
    {"output_bias": True},
    *({"positions": each, "max_positions": 512} for each in ("sinusoidal", "learned", "rotary")),
    {"d_k": 16, "d_v": 16},
    {"kv_heads": 2},
    {"encoder_layers": 3, "decoder_layers": 1},
]


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_ctranslate2_gives_the_same_scores_and_translations(tmp_path: Path, options: dict[str, Any]) -> None:
    trained, ours = make_trained("ctranslate2", **options)
    tokenizer = trained.tokenizer
    ctranslate2.write(tmp_path, trained)
    decoding = DecodingConfig(beam=3, nbest=3, extra_length=12, batch_tokens=1)
    theirs = CTranslate2Engine(tmp_path, decoding, CPU, max_positions=trained.positions)
    sources, targets = tokenizer.encode_source(LINES), tokenizer.encode_target(LINES[::-1])
    scored = theirs.label_scores([[*each, EOS] for each in sources], [[*each, EOS] for each in targets])
    for source, target, found in zip(sources, targets, scored, strict=True):
        expected = log_probabilities(ours, source, target)
        assert found == pytest.approx(expected.tolist(), rel=1e-3, abs=1e-4)
    for beam, nbest in ((1, 1), (3, 3)):
        chosen = replace(decoding, beam=beam, nbest=nbest)
        theirs.config = chosen
        native = TorchEngine([ours], tokenizer, chosen, CPU).translate_ids(sources)
        exported = theirs.translate_ids(sources)
        for source, ours_found, theirs_found in zip(sources, native, exported, strict=True):
            if all(len(each.tokens) < len(source) + 10 for each in ours_found):  # at the limit they end differently
                assert [each.tokens for each in theirs_found] == [each.tokens for each in ours_found]
                assert [each.score for each in theirs_found] == pytest.approx(
                    [each.score for each in ours_found], rel=0.1 if ours.config.norm == "rms" else 0.01
                )


def test_controls_are_passed_on_to_ctranslate2_or_refused(tmp_path: Path) -> None:
    trained, ours = make_trained("ctranslate2")
    tokenizer = trained.tokenizer
    ctranslate2.write(tmp_path, trained)
    requests = [Request(line, tokenizer.decode(tokenizer.encode_target([line])[0][:2])) for line in LINES]
    settings: list[dict[str, Any]] = [
        {"no_repeat_ngram": 1}, {"no_repeat_ngram": 2},
    ]  # fmt: skip
    changed = 0
    for controls in settings:
        # Greedy search: of several hypotheses, CTranslate2 does not count what is forbidden as improbable.
        config, plain = DecodingConfig(beam=1, extra_length=30, **controls), DecodingConfig(beam=1, extra_length=30)
        theirs, native = CTranslate2Engine(tmp_path, config, CPU), TorchEngine([ours], tokenizer, config, CPU)
        expected = [each.text for each in native.translate(LINES)]
        assert [each.text for each in theirs.translate(LINES)] == expected
        changed += expected != [each.text for each in TorchEngine([ours], tokenizer, plain, CPU).translate(LINES)]
    assert changed >= 2
    risk = DecodingConfig(strategy="mbr", candidates=5)
    engine = CTranslate2Engine(tmp_path, risk, CPU)
    assert all(translation.text for translation in engine.translate(LINES))
    for request, translation in zip(requests, engine.translate(requests), strict=True):
        assert translation.text.startswith(request.beginning)
    with pytest.raises(UserError, match="engine=ctranslate2 cannot require terms"):
        list(engine.translate([Request(LINES[0], terms=("a",))]))


def test_a_damaged_export_is_refused_by_name(tmp_path: Path) -> None:
    make_tokenizer().save(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"CTranslate2 cannot load .*: run `make export` again"):
        CTranslate2Engine(tmp_path, DecodingConfig(), CPU)
