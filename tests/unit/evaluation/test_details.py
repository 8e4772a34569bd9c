"""Scores of the parts of a test set, and the shares of translations with typical faults."""

import pytest
import sacrebleu

from nmt.evaluation.details import length_group, parts, rates
from nmt.evaluation.metric import Translated

SOURCES = ["a dog", "the old king sees a tree in the big green park today", "a cat", "hello there"]
REFERENCES = ["ein Hund", "der alte König sieht heute einen Baum im großen grünen Park", "eine Katze", "hallo du"]


def test_parts_have_the_scores_of_their_sentences() -> None:
    hypotheses = ["ein Hund", "der König sieht einen Baum im Park", "eine Katze", "hallo"]
    found = parts(Translated(hypotheses, [REFERENCES], "de", SOURCES), {"origin": ["en", "de", "de", "en"]})
    assert [(part.label, part.value, part.sentences) for part in found] == [
        ("origin", "de", 2), ("origin", "en", 2), ("length", "1-10", 3), ("length", "11-20", 1),
    ]  # fmt: skip
    german = [[lines[1], lines[2]] for lines in (hypotheses, REFERENCES)]
    assert found[0].bleu == sacrebleu.corpus_bleu(german[0], [german[1]]).score
    assert found[0].chrf == sacrebleu.corpus_chrf(german[0], [german[1]]).score


@pytest.mark.parametrize(("words", "group"), [(1, "1-10"), (10, "1-10"), (11, "11-20"), (50, "31-50"), (51, "51-")])
def test_lengths_are_grouped(words: int, group: str) -> None:
    assert length_group(words) == group


def test_groups_of_lengths_are_in_order_of_their_numbers() -> None:
    sources = ["x " * words for words in (60, 5, 25, 15, 40)]
    values = [part.value for part in parts(Translated(["y"] * 5, [["y"] * 5], "de", sources), {})]
    assert values == ["1-10", "11-20", "21-30", "31-50", "51-"]


def test_each_fault_is_counted() -> None:
    again = "der alte König sieht " * 4
    found = rates(Translated(["a dog", again, "xyz qq", "hallo ⁇"], [REFERENCES], "de", SOURCES))
    assert (found.copied, found.repetitive, found.unknown) == (0.25, 0.25, 0.25)
    assert found.unrelated == 0.25 + 0.25 * (sacrebleu.sentence_chrf("a dog", ["ein Hund"]).score < 10)
    assert found.hallucinated == 0.5
    assert found.length_ratio == (2 + 16 + 2 + 2) / (2 + 11 + 2 + 2)


def test_of_several_references_the_one_of_the_closest_length_counts_as_in_bleu() -> None:
    short, long = ["a b", "a b c d e"], ["a b c d", "a b c d e f g"]
    found = rates(Translated(["a b c", "a b c d e f"], [long, short], "de", ["x", "y"]))
    assert found.length_ratio == (3 + 6) / (2 + 5)


def test_text_without_spaces_is_counted_by_characters() -> None:
    sources = ["我喜欢这只狗。", "他说的话" * 20]
    text = Translated(["我喜欢" * 8, "是"], [["我喜欢", "是的"]], "zh", sources=sources)
    assert rates(text).repetitive == 0.5
    assert rates(text).length_ratio == 5.0  # 24 and 1 characters, 3 and 2 in the reference
    assert [(each.value, each.sentences) for each in parts(text, {})] == [("1-10", 1), ("51-", 1)]


def test_what_the_source_or_a_reference_has_is_no_fault() -> None:
    chorus = "la la la la la la la la"
    lines = [chorus, "Berlin", ""]
    found = rates(Translated(lines, [["das Lied", "die Stadt", ""], lines], "de", lines))
    assert (found.copied, found.repetitive, found.hallucinated) == (0, 0, 0)
