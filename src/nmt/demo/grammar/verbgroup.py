"""The verb of a clause with tense, modal and negation: the finite part and the rest, in both languages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.demo.grammar import english, german
from nmt.demo.grammar.features import Agreement, Order, Tense
from nmt.demo.grammar.lexicon import Verb
from nmt.demo.grammar.words import Word, Words


@dataclass(frozen=True, slots=True)
class Modal:
    """A modal verb. English has true modals (can) and periphrases (has to); German has modals, and gern."""

    english: str
    """The finite word of a true modal; the base of a modal that inflects (have, want, like, be)."""
    past: str
    rest: tuple[str, ...]
    """English words between the finite word and the infinitive."""
    german: str
    """Infinitive; empty if German uses gern instead."""


CAN = Modal("can", "could", (), "können")
SHOULD = Modal("should", "should", (), "sollen")
WOULD_LIKE = Modal("would", "would", ("like", "to"), "möchten")
HAVE_TO = Modal("have", "had", ("to",), "müssen")
WANT_TO = Modal("want", "wanted", ("to",), "wollen")
MAY = Modal("be", "was", ("allowed", "to"), "dürfen")
LIKE_TO = Modal("like", "liked", ("to",), "")
PRETERITE_FORM = ("sollen", "möchten")
"""Modals used in sollte and möchte, whatever the tense."""


class GermanBracket(NamedTuple):
    """The finite verb and the word that closes the bracket; `prefix` separates from the finite verb."""

    finite: str
    closing: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb in a tense, with an optional modal and negation."""

    verb: Verb
    tense: Tense = Tense.PRESENT
    modal: Modal | None = None
    negated: bool = False

    def form(self) -> str:
        """Return the shape of the German group (simple, infinitive, participle), by which combinations are held out."""
        if (self.modal and self.modal.german) or self.tense is Tense.FUTURE:
            return "infinitive"
        if self.tense in (Tense.PERFECT, Tense.PLUPERFECT, Tense.PASSIVE):
            return "participle"
        return "participle" if self.tense is Tense.PAST and not self._keeps_preterite else "simple"

    @property
    def _keeps_preterite(self) -> bool:
        return self.verb.german[0] in ("sein", "haben") or self.verb.english[0] == "be"

    def english_forms(self, agreement: Agreement, inverted: bool) -> tuple[list[str], bool]:  # noqa: PLR0911
        """Return the English verb forms, with do if they need it, and whether the first is an operator.

        Negation and adverbs follow an operator; it also changes places with the subject, which is then `inverted`.
        """
        base, past, participle = self.verb.english
        rest: tuple[str, ...] = ()
        if self.modal:
            rest, base, past = (*self.modal.rest, base), self.modal.english, self.modal.past
        else:
            match self.tense:
                case Tense.PERFECT:
                    return [english.present("have", agreement), participle], True
                case Tense.PLUPERFECT:
                    return ["had", participle], True
                case Tense.FUTURE:
                    return ["will", base], True
                case Tense.PROGRESSIVE:
                    return [english.present("be", agreement), english.gerund(base)], True
                case Tense.SINCE:
                    return [english.present("have", agreement), "been", english.gerund(base)], True
                case Tense.PASSIVE:
                    return [english.be_past(agreement), participle], True
        operator = base == "be" or base in english.MODALS
        if not operator and (inverted or self.negated):
            return [english.do_support(self.tense, agreement), base, *rest], True
        if self.tense is Tense.PAST:
            return [english.be_past(agreement) if base == "be" else past, *rest], operator
        return [english.present(base, agreement), *rest], operator

    def english_words(self, forms: Sequence[str], at: str) -> Words:
        """Return the English verb forms as words."""
        *before, verb = forms
        named = []
        for place, form in enumerate(before):
            if not self.modal or (place == 0 and form in english.FORMS_OF_DO):
                named.append(self._auxiliary_word(form, at))
            elif form == "to":
                named.append(Word(form, (), f"{at}modal"))
            else:
                named.append(Word(form, (f"{at}modal",), f"{at}verb"))
        return (*named, Word(verb, (f"{at}verb",)))

    def _auxiliary_word(self, form: str, at: str) -> Word:
        return Word(form, (f"{at}auxiliary",), f"{at}modal" if self.modal else f"{at}verb")

    def _german_bracket(self, agreement: Agreement) -> GermanBracket:  # noqa: PLR0911
        infinitive, third, participle = self.verb.german
        whole = self.verb.prefix + infinitive
        auxiliary = "sein" if "sein" in self.verb.flags else "haben"
        if self.modal and self.modal.german:
            preterite = self.modal.german in PRETERITE_FORM or self.tense is Tense.PAST
            inflect = german.preterite if preterite else german.present
            return GermanBracket(inflect(self.modal.german, agreement), whole)
        match self.tense:
            case Tense.PAST if self._keeps_preterite:
                return GermanBracket(german.preterite(infinitive, agreement))
            case Tense.PAST | Tense.PERFECT:
                return GermanBracket(german.present(auxiliary, agreement), participle)
            case Tense.PLUPERFECT:
                return GermanBracket(german.preterite(auxiliary, agreement), participle)
            case Tense.FUTURE:
                return GermanBracket(german.present("werden", agreement), whole)
            case Tense.PASSIVE:
                return GermanBracket(german.preterite("werden", agreement), participle)
        return GermanBracket(german.present(infinitive, agreement, third, self.verb.du), prefix=self.verb.prefix)

    def german_order(self, agreement: Agreement, order: Order, at: str = "") -> tuple[Words, Words]:
        """Return the words that open and close the German verb bracket."""
        verb, to = f"{at}verb", f"{at}to"
        if order is Order.ZU:
            infinitive, prefix = self.verb.german[0], self.verb.prefix
            if prefix:
                return (), (Word(f"{prefix}zu{infinitive}", (verb, to)),)
            return (), (Word("zu", (to,)), Word(infinitive, (verb,)))
        finite, closing, prefix = self._german_bracket(agreement)
        last = (Word(closing, (verb,)),) if closing else ()
        if order is Order.LAST:
            return (), (*last, self._finite_word(prefix + finite, closing, at))
        return (self._finite_word(finite, closing, at),), last or ((Word(prefix, (), verb),) if prefix else ())

    def _finite_word(self, form: str, closing: str, at: str) -> Word:
        if not closing:
            return Word(form, (f"{at}verb",))
        if self.modal and self.modal.german:
            return Word(form, (f"{at}modal",), f"{at}verb")
        return self._auxiliary_word(form, at)
