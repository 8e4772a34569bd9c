"""Terms and beginnings with the engine, in a small random model."""

from pathlib import Path

import pytest

from nmt.decoding.translation import Request
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer
from tests.unit.decoding.test_torch_engine import LINES, tokenizer, translator
from tests.unit.small_models import make_model

__all__ = ["tokenizer"]


def test_terms_and_beginnings_stand_in_the_translations(tokenizer: Tokenizer, tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("small cat\tvery small dog\ndog\tcat\n", encoding="utf-8")
    engine = translator([make_model(tokenizer)], tokenizer, beam=4, terms=str(glossary))
    requests = [Request(LINES[0]), Request("a Dog", "the sm", ("it sees",)), Request("cats", "that it ", ("is not",))]
    first, second, third = (each.text for each in engine.translate(requests))
    for text, terms in [(first, ["very small dog", "cat"]), (second, ["it sees"]), (third, ["is not"])]:
        assert all(f" {term} " in f" {text} " for term in terms)
    assert second.startswith("the sm")
    assert third.startswith("that it")
    without = translator([make_model(tokenizer)], tokenizer, beam=4)
    assert list(engine.translate(["cats"])) == list(without.translate(["cats"]))


def test_a_term_that_the_model_cannot_write_is_refused(tokenizer: Tokenizer) -> None:
    engine = translator([make_model(tokenizer)], tokenizer)
    with pytest.raises(UserError, match="the term '猫' has characters that the model cannot write"):
        list(engine.translate([Request("a dog", terms=("猫",))]))
    with pytest.raises(UserError, match="the terms of a line need more than 4,095 tokens"):
        list(engine.translate([Request("a dog", terms=("the cat sees " * 2000,))]))
