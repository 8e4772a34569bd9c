"""Drawings of trees: every word and label is there, and exactly the brackets that differ are marked."""

import re
from xml.etree import ElementTree

from nmt.parsing.trees import Node, parse_trees
from nmt.report.trees import draw

SVG = "{http://www.w3.org/2000/svg}"


def tree(text: str) -> Node:
    (found,) = parse_trees([text], "a tree")
    return found


def drawn(first: str, second: str, style: str) -> list[tuple[str, str]]:
    """Return the style and the text of everything that a drawing shows, from left to right."""
    picture = str(draw(tree(first), tree(second), style))
    shapes = ElementTree.fromstring(picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    texts = sorted(shapes.iter(f"{SVG}text"), key=lambda each: float(each.attrib["x"]))
    return [(each.attrib["class"], each.text or "") for each in texts]


REFERENCE = "(S (NP (DT the) (NN dog)) (VP (VB sees) (NP (NN me))))"
PREDICTED = "(S (NP (DT the) (NN dog)) (VP (VB sees)) (NP (NN me)))"


def test_equal_trees_have_no_marks() -> None:
    assert {style for style, _ in drawn(REFERENCE, REFERENCE, "missed")} == {"word", "phrase"}


def test_only_brackets_that_the_other_tree_lacks_are_marked() -> None:
    assert [text for style, text in drawn(REFERENCE, PREDICTED, "missed") if style == "missed"] == ["VP"]
    assert [text for style, text in drawn(PREDICTED, REFERENCE, "invented") if style == "invented"] == ["VP"]


def test_words_are_drawn_in_their_order() -> None:
    shown = drawn(REFERENCE, PREDICTED, "missed")
    assert [text for style, text in shown if style == "word"] == ["the", "dog", "sees", "me"]
    assert sorted(text for style, text in shown if style != "word") == ["NP", "NP", "S", "VP"]


def test_surplus_brackets_of_a_chain_are_marked_once_each() -> None:
    chain = drawn("(NP (NP (NP (NN me))))", "(NP (NN me))", "invented")
    assert [style for style, text in chain if text == "NP"].count("invented") == 2


def test_text_is_escaped() -> None:
    picture = str(draw(tree("(NP (NN <script>))"), tree("(NP (NN x))"), "missed"))
    assert "<script>" not in picture
    assert re.search("&lt;script&gt;</text>", picture)
