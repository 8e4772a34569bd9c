"""The source of the demo's text."""

from nmt.demo import grammar, trees
from nmt.demo.source import SAME_TEXT


def test_text_of_the_moved_grammar_need_not_be_prepared_again() -> None:
    """If the grammar has changed, its text has, too: delete its entry."""
    assert set(SAME_TEXT) == {grammar.fingerprint(), trees.fingerprint()}
