"""The trees of the embedded demo language's English sentences, in the style of the Penn Treebank."""

from collections.abc import Iterator, Sequence

from nmt.demo.grammar import english
from nmt.demo.grammar.clauses import BEFORE_MAIN_VERB, SEPARABLE_PARTICLES, Clause, Role
from nmt.demo.grammar.clauses import Part as ClausePart
from nmt.demo.grammar.determiners import HOW_MANY, WHICH
from nmt.demo.grammar.features import Case, Language, Order
from nmt.demo.grammar.lexicon import NUMBER
from nmt.demo.grammar.phrases import (
    Asked,
    Both,
    Fixed,
    Name,
    NounPhrase,
    Phrase,
    Prepositional,
    Pronoun,
    Than,
    There,
)
from nmt.demo.grammar.sentences import Connector, Linked, Sentence
from nmt.demo.grammar.words import spelled
from nmt.demo.verbs import verb_forms, verb_phrase
from nmt.parsing.trees import Leaf, Node, Part, leaves, with_leaves

DETERMINERS = frozenset({"the", "a", "an", "this", "these", "every", "any", "no", "some", "all"})
POSSESSIVES = frozenset({"my", "your", "his", "her", "our", "their"})
PREPOSITIONS = frozenset({"in", "on", "at", "for", "since", "of", "before", "after"})
PARTICLES = {
    "at": "PP", "for": "PP", "with": "PP", "to": "PP", "in love": "PP",
    "breakfast": "NP", "care": "NP", "part": "NP", "place": "NP", "asleep": "ADJP", "forward": "ADVP",
}  # fmt: skip
"""The phrases of particles; any other particle is a PRT."""
TIME_ADVERBS = frozenset({"soon", "already", "yet", "home", "never", "perhaps"})
COORDINATING = (Connector.AND, Connector.BUT)
NUMBERS = frozenset(number.english for number in NUMBER)


def sentence_tree(sentence: Sentence) -> Node:
    """Return the tree of a sentence; the first word is capitalised, and the final mark belongs to the whole."""
    tree = _body(sentence.body, sentence.question)
    mark = Leaf(".", "?" if sentence.question else ".")
    tree = Node(tree.label, (*tree.children, mark))
    first, *others = leaves(tree)
    return with_leaves(tree, [Leaf(first.tag, first.word[0].upper() + first.word[1:]), *others])


def _body(body: Clause | Linked, question: bool = False) -> Node:
    if isinstance(body, Clause):
        return _clause(body, question)
    if body.connector in COORDINATING:
        comma = (Leaf(",", ","),) if body.connector.english_comma else ()
        parts = (_body(body.first, question), *comma, Leaf("CC", body.connector.english), _body(body.second))
        return Node("S", parts)
    second = _subordinate(body)
    if not body.reversed:
        return _clause(body.first, question, [second])
    first = _clause(body.first, question)
    return Node(first.label, (second, Leaf(",", ","), *first.children))


def _subordinate(linked: Linked) -> Node:
    """Return the second of two linked clauses as a part of the first."""
    if linked.connector.order is Order.ZU and isinstance(linked.second, Clause):
        verb = linked.second.group.verb.english[0]
        return Node("S", (verb_phrase([Leaf("TO", "to"), Leaf("VB", verb)], [], _tail(linked.second)),))
    return Node("SBAR", (Leaf("IN", linked.connector.english), _body(linked.second)))


def _clause(clause: Clause, question: bool = False, extra: Sequence[Part] = ()) -> Node:
    """Return the tree of a clause; `extra` are parts at the end of its innermost verb phrase."""
    verbs, operator = verb_forms(clause, question)
    adverbs: list[Part] = [_part(part) for part in clause.parts if part.role in BEFORE_MAIN_VERB]
    negation: list[Part] = [Leaf("RB", "not")] if clause.group.negated else []
    tail = [*_tail(clause), *extra]
    front = _front(clause)
    if question and not clause.asks_for_subject:
        subject = _phrase(clause.subject, Case.NOMINATIVE)
        rest = [verb_phrase(verbs[1:], [], tail)] if len(verbs) > 1 else tail
        inverted = Node("SQ", (verbs[0], subject, *negation, *adverbs, *rest))
        return Node("SBARQ", (*front, inverted)) if front else inverted
    phrase = verb_phrase(verbs, [*negation, *adverbs] if operator else [], tail, before=[] if operator else adverbs)
    subject = _phrase(clause.subject, Case.NOMINATIVE)
    if question:
        return Node("SBARQ", (subject, Node("SQ", (phrase,))))
    return Node("S", (*front, subject, phrase))


def relative_clause(clause: Clause) -> Node:
    """Return the tree of a relative clause, whose pronoun is outside of the inner clause."""
    tree = _clause(clause)
    return Node("SBAR", (tree.children[0], Node("S", tree.children[1:])))


def _front(clause: Clause) -> tuple[Part, ...]:
    if clause.front is None:
        return ()
    comma = (Leaf(",", ","),) if clause.front.role is Role.COMMENT else ()
    return (_part(clause.front), *comma)


def _tail(clause: Clause) -> list[Part]:
    """Return what follows the last verb: the particle and the parts in their English order."""
    later = [part for part in clause.parts if part.role not in BEFORE_MAIN_VERB]
    parts = sorted(later, key=lambda part: part.role.english_rank)
    trees = list(_merge_standards(parts))
    particle = clause.group.verb.particle
    if not particle:
        return trees
    if particle in SEPARABLE_PARTICLES and parts and parts[0].phrase.light:
        return [trees[0], _particle(particle), *trees[1:]]
    if PARTICLES.get(particle) == "PP" and parts and parts[0].role is Role.OBJECT:
        return [Node("PP", (Leaf("TO" if particle == "to" else "IN", particle), trees[0])), *trees[1:]]
    return [_particle(particle), *trees]


def _merge_standards(parts: Sequence[ClausePart]) -> Iterator[Part]:
    """Yield the trees of parts; a comparison and its standard are one phrase."""
    standard = next((part for part in parts if part.role is Role.STANDARD), None)
    for part in parts:
        if part.role is Role.PREDICATE and standard is not None:
            more = _adjectives(_spelled(part.phrase, Case.NOMINATIVE), compared=True)
            yield Node("ADJP", (more, _part(standard)))
        elif part.role is not Role.STANDARD:
            yield _part(part)


def _particle(particle: str) -> Node:
    first, *rest = particle.split()
    if rest:
        return Node("PP", (Leaf("IN", first), Node("NP", tuple(Leaf("NN", word) for word in rest))))
    label = PARTICLES.get(particle, "PRT")
    return Node(label, (Leaf({"NP": "NN", "ADJP": "JJ", "ADVP": "RB", "PP": "IN"}.get(label, "RP"), particle),))


def _part(part: ClausePart) -> Node:
    case = Case.NOMINATIVE if part.role is Role.PREDICATE else Case.ACCUSATIVE
    if isinstance(part.phrase, Fixed):
        return _fixed(part.role, part.phrase.english)
    tree = _phrase(part.phrase, case)
    return Node("PP", (Leaf("TO", "to"), tree)) if part.role is Role.SHIFTED else tree


def _phrase(phrase: Phrase, case: Case) -> Node:  # noqa: PLR0911
    """Return the tree of any phrase but Fixed, whose structure depends on its role."""
    match phrase:
        case NounPhrase():
            return _noun_phrase(phrase)
        case Name():
            return Node("NP", tuple(Leaf("NNP", word) for word in phrase.english.split()))
        case Both():
            return Node("NP", (_phrase(phrase.first, case), Leaf("CC", "and"), _phrase(phrase.second, case)))
        case Prepositional():
            nominal = phrase.nominal
            inner = _time(nominal.english) if isinstance(nominal, Fixed) else _phrase(nominal, Case.ACCUSATIVE)
            word = phrase.english
            if not word:  # German needs a preposition, and English does not: remember someone
                return inner
            return Node("PP", (Leaf("TO" if word == "to" else "IN", word), inner))
        case Than():
            return Node("PP", (Leaf("IN", "than"), _phrase(phrase.standard, case)))
        case Pronoun():
            return Node("NP", (Leaf("PRP", _spelled(phrase, case)),))
        case There():
            return Node("NP", (Leaf("EX", "there"),))
        case Asked():
            tag = "WDT" if phrase.relative and not phrase.human else "WP"
            return Node("WHNP", (Leaf(tag, _spelled(phrase, case)),))
        case _:
            raise TypeError(f"a {type(phrase).__name__} has no tree")


def _spelled(phrase: Phrase, case: Case) -> str:
    return spelled(phrase.render(Language.ENGLISH, case))


def _noun_phrase(phrase: NounPhrase) -> Node:
    *modifiers, noun = phrase.english_noun.split()
    adjectives = phrase.adjective.english.split() if phrase.adjective else ()
    rest = (*(Leaf("JJ", word) for word in adjectives), *(Leaf("NN", word) for word in modifiers))
    head = Leaf("NNS" if phrase.plural else "NN", noun)
    label = "WHNP" if phrase.determiner in (WHICH, HOW_MANY) else "NP"
    tree = Node(label, (*_determiner(phrase), *rest, head))
    if phrase.relative is None:
        return tree
    return Node("NP", (tree, relative_clause(phrase.relative)))


def _determiner(phrase: NounPhrase) -> tuple[Part, ...]:
    if phrase.possessor:
        owner = _phrase(phrase.possessor, Case.GENITIVE)
        mark = english.possessive(list(leaves(owner))[-1].word)
        return (Node("NP", (*owner.children, Leaf("POS", mark))),)
    if phrase.determiner is HOW_MANY:
        return (Node("WHADJP", (Leaf("WRB", "how"), Leaf("JJ", "many"))),)
    word = phrase.english_determiner
    return (Leaf(_determiner_tag(word), word),) if word else ()


def _determiner_tag(word: str) -> str:
    if word in DETERMINERS:
        return "DT"
    if word in POSSESSIVES:
        return "PRP$"
    return {"which": "WDT", "many": "JJ"}.get(word, "CD")


def _fixed(role: Role, text: str) -> Node:
    """Return the tree of words that do not inflect."""
    match role:
        case Role.PREDICATE:
            return _adjectives(text)
        case Role.OBJECT:
            return _time(text)
        case Role.PLACE:
            return Node("WHADVP", (Leaf("WRB", text),))
        case Role.TIME | Role.DIRECTION if text not in TIME_ADVERBS:
            return _time(text)
        case Role.COMMENT if text == "of course":
            return Node("PP", (Leaf("IN", "of"), Node("NP", (Leaf("NN", "course"),))))
        case _:
            return Node("ADVP", tuple(Leaf("RB", word) for word in text.split()))


def _adjectives(text: str, *, compared: bool = False) -> Node:
    """Return an adjective, perhaps with very, too or more."""
    *degree, adjective = text.split()
    tag = "JJR" if compared and not degree else "JJ"
    return Node("ADJP", (*(Leaf("RBR" if compared else "RB", word) for word in degree), Leaf(tag, adjective)))


def _time(text: str) -> Node:
    """Return a time or an amount: in 1987, three weeks ago, the day before yesterday, 20 euros."""
    words = text.split()
    if words[0] in PREPOSITIONS:
        return Node("PP", (Leaf("IN", words[0]), _time(" ".join(words[1:]))))
    if words[-1] == "ago":
        return Node("ADVP", (_time(" ".join(words[:-1])), Leaf("RB", "ago")))
    if "before" in words or "after" in words:
        return Node("NP", (_time(" ".join(words[:2])), _time(" ".join(words[2:]))))
    return Node("NP", tuple(Leaf(_time_tag(word), word) for word in words))


def _time_tag(word: str) -> str:
    if word in DETERMINERS:
        return "DT"
    if word in ("last", "next"):
        return "JJ"
    if word == "o'clock":
        return "RB"
    if word[0].isupper():
        return "NNP"
    if word.isdigit() or word in NUMBERS:
        return "CD"
    return "NNS" if word.endswith("s") and not word.endswith("ss") else "NN"
