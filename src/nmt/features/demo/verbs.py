"""The verb forms of a clause of the demo language, with their tags, and the phrases in which they nest."""

from collections.abc import Sequence

from nmt.features.demo.grammar import english
from nmt.features.demo.grammar.clauses import Clause
from nmt.features.demo.grammar.features import Agreement, Tense
from nmt.features.demo.grammar.pronouns import There
from nmt.parsing.trees import Leaf, Node, Part

MODALS = frozenset({"will", "can", "could", "should", "would"})
FORMS_OF_DO = frozenset({"do", "does", "did"})
PAST_TENSES = frozenset({Tense.PAST, Tense.PLUPERFECT, Tense.PASSIVE})


def verb_forms(clause: Clause, question: bool) -> list[Leaf]:
    """Return the verb forms of a clause, the finite one first."""
    group, agreement = clause.group, clause.subject.agreement
    if isinstance(clause.subject, There):
        agreement = Agreement(3, clause.subject.plural)
    chain = group.english_chain(agreement)
    forms = [chain.finite, *chain.rest]
    if chain.base and (group.negated or (question and not clause.asks_for_subject)):
        forms = [english.do_support(group.tense, agreement), chain.base, *chain.rest]
    found = [Leaf(_finite_tag(forms[0], group.tense, agreement), forms[0])]
    for form in forms[1:]:
        found.append(Leaf(_tag_after(found[-1], form), form))
    return found


def _finite_tag(form: str, tense: Tense, agreement: Agreement) -> str:
    if form in MODALS:
        return "MD"
    if tense in PAST_TENSES:
        return "VBD"
    return "VBZ" if agreement.third_singular else "VBP"


def _tag_after(before: Leaf, form: str) -> str:
    """Return the tag of a verb form, given the form before it."""
    if form == "to":
        return "TO"
    if before.tag in ("MD", "TO") or before.word in FORMS_OF_DO:
        return "VB"
    return "VBG" if form.endswith("ing") else "VBN"


def is_operator(clause: Clause, verbs: Sequence[Leaf]) -> bool:
    """Return whether negation and adverbs follow the finite verb."""
    agreement = clause.subject.agreement
    return not clause.group.english_chain(agreement).base or verbs[0].word in FORMS_OF_DO - {
        clause.group.verb.english[0]
    }


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
