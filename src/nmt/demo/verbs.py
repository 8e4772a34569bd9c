"""The verb forms of a clause of the demo language, with their tags, and the phrases in which they nest."""

from collections.abc import Sequence

from nmt.demo.grammar import english
from nmt.demo.grammar.clauses import Clause
from nmt.demo.grammar.features import Agreement, Tense
from nmt.parsing.trees import Leaf, Node, Part

PAST_TENSES = frozenset({Tense.PAST, Tense.PLUPERFECT, Tense.PASSIVE})


def verb_forms(clause: Clause, question: bool) -> tuple[list[Leaf], bool]:
    """Return the verb forms of a clause, the finite one first, and whether negation and adverbs follow that."""
    agreement = clause.english_agreement
    forms, operator = clause.group.english_forms(agreement, question and not clause.asks_for_subject)
    found = [Leaf(_finite_tag(forms[0], clause.group.tense, agreement), forms[0])]
    for form in forms[1:]:
        found.append(Leaf(_tag_after(found[-1], form), form))
    return found, operator


def _finite_tag(form: str, tense: Tense, agreement: Agreement) -> str:
    if form in english.MODALS:
        return "MD"
    if tense in PAST_TENSES:
        return "VBD"
    return "VBZ" if agreement.third_singular else "VBP"


def _tag_after(before: Leaf, form: str) -> str:
    """Return the tag of a verb form, given the form before it."""
    if form == "to":
        return "TO"
    if before.tag in ("MD", "TO") or before.word in english.FORMS_OF_DO:
        return "VB"
    return "VBG" if form.endswith("ing") else "VBN"


def verb_phrase(
    verbs: Sequence[Leaf], after_first: Sequence[Part], tail: Sequence[Part], before: Sequence[Part] = ()
) -> Node:
    """Return nested verb phrases, one per verb; `to` begins a clause of its own."""
    head, rest = verbs[0], verbs[1:]
    if not rest:
        return Node("VP", (*before, head, *after_first, *tail))
    inner = verb_phrase(rest, [], tail)
    if rest[0].tag == "TO":
        inner = Node("S", (inner,))
    return Node("VP", (*before, head, *after_first, inner))
