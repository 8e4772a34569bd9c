"""Requests as token ids."""

import pytest

from nmt.config.data import TokenizerConfig
from nmt.config.decoding import DecodingConfig
from nmt.decoding.constraints import ConstraintEncoder
from nmt.decoding.translation import Request
from nmt.text.glossary import Glossary
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train
from tests.unit.small_models import LINES


@pytest.mark.parametrize("spaces", [" ", "  ", "\t", "\u00a0"])
def test_spaces_at_the_end_of_a_beginning_are_no_pieces(spaces: str) -> None:
    tokenizer = Tokenizer(train(iter(LINES * 5), 5 * len(LINES), TokenizerConfig(vocab_size=80))[0])
    beginning = " ".join(LINES[0].split()[:2])
    tokens, with_spaces = tokenizer.encode_target([beginning, beginning + " "])
    assert with_spaces != tokens
    found = ConstraintEncoder(tokenizer, Glossary({}), 100).encode([Request("text", beginning + spaces)])
    assert found is not None
    assert list(found[0].beginning) == tokens


def test_a_strangers_model_does_not_name_the_file_with_terms() -> None:
    config = DecodingConfig(terms="/etc/passwd", beam=7)
    assert config.naming_no_file == DecodingConfig(beam=7)
