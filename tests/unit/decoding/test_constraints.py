"""Requests as token ids."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.config.data import TokenizerConfig
from nmt.config.decoding import DecodingConfig
from nmt.decoding.constraints import ConstraintEncoder
from nmt.decoding.request import Request
from nmt.decoding.torch_engine import TorchEngine
from nmt.text.glossary import Glossary
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train
from tests.unit.small_models import LINES, make_model


@pytest.mark.parametrize("spaces", [" ", "  ", "\t", "\u00a0"])
def test_spaces_at_the_end_of_a_beginning_are_no_pieces(spaces: str) -> None:
    tokenizer = Tokenizer(train(iter(LINES * 5), 5 * len(LINES), TokenizerConfig(vocab_size=80))[0])
    beginning = " ".join(LINES[0].split()[:2])
    tokens, with_spaces = tokenizer.encode_target([beginning, beginning + " "])
    assert with_spaces != tokens
    found = ConstraintEncoder(tokenizer, Glossary({}), 100).encode([Request("text", beginning + spaces)])
    assert found is not None
    assert list(found[0].beginning) == tokens


def test_a_glossary_is_encoded_once_for_all_searches_of_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "terms.tsv").write_text("dog\tsees\ncat\tsmall\nhound\tsees\n")
    tokenizer = Tokenizer(train(iter(LINES * 5), 5 * len(LINES), TokenizerConfig(vocab_size=80))[0])
    encode, encoded = Tokenizer.encode_target, []

    def noting(self: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
        encoded.append(list(lines))
        return encode(self, lines)

    monkeypatch.setattr(Tokenizer, "encode_target", noting)
    search = DecodingConfig(terms=str(tmp_path / "terms.tsv"), beam=4)
    engine = TorchEngine([make_model(tokenizer)], tokenizer, search, torch.device("cpu"))
    others = [engine.with_search(replace(search, beam=beam), 1) for beam in (4, 5)]
    assert encoded == [["sees", "small"]]
    assert "sees" in next(iter(others[1].translate(["a dog"]))).text


def test_a_strangers_model_does_not_name_the_file_with_terms() -> None:
    config = DecodingConfig(terms="/etc/passwd", beam=7)
    assert config.naming_no_file == DecodingConfig(beam=7)
