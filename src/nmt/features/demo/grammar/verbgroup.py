"""The verb of a clause with tense, modal and negation: the finite part and the rest, in both languages."""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.features.demo.grammar import english, german
from nmt.features.demo.grammar.features import Agreement, Order, Tense
from nmt.features.demo.grammar.lexicon import Verb
from nmt.features.demo.grammar.words import Word, Words


@dataclass(frozen=True, slots=True)
class Modal:
    """A modal verb. English has true modals (can) and periphrases (has to); German has modals, and gern."""

    name: str
    english_present: str
    """The finite word of a true modal; the base of a modal that inflects (have, want, like, be)."""
    english_past: str
    rest: tuple[str, ...]
    """Words between the finite word and the infinitive."""
    german: str
    """Infinitive; empty if German uses gern instead."""


CAN = Modal("can", "can", "could", (), "können")
SHOULD = Modal("should", "should", "should", (), "sollen")
WOULD_LIKE = Modal("would like to", "would", "would", ("like", "to"), "möchten")
HAVE_TO = Modal("have to", "have", "had", ("to",), "müssen")
WANT_TO = Modal("want to", "want", "wanted", ("to",), "wollen")
MAY = Modal("be allowed to", "be", "was", ("allowed", "to"), "dürfen")
LIKE_TO = Modal("like to", "like", "liked", ("to",), "")
INFLECTING = ("have to", "want to", "like to")
PRETERITE_FORM = ("sollen", "möchten")
"""Modals used in sollte and möchte, whatever the tense."""
KEEPS_PRETERITE = ("sein", "haben")


@dataclass(frozen=True, slots=True)
class EnglishChain:
    """The English verb forms; `base` is set if negation and questions need `do`."""

    finite: str
    rest: tuple[str, ...]
    base: str = ""


@dataclass(frozen=True, slots=True)
class GermanBracket:
    """The finite verb and the words that close the bracket; `prefix` separates from the finite verb."""

    finite: str
    closing: tuple[str, ...] = ()
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
        return self.verb.german[0] in KEEPS_PRETERITE or (self.verb.english[0] == "be")

    @property
    def infinitive(self) -> str:
        """The German infinitive with its prefix."""
        return self.verb.prefix + self.verb.german[0]

    def english_chain(self, agreement: Agreement) -> EnglishChain:  # noqa: PLR0911
        """Return the English verb forms for a subject."""
        base, past, participle = self.verb.english
        if self.modal:
            return self._english_modal(self.modal, agreement)
        match self.tense:
            case Tense.PRESENT if base == "be":
                return EnglishChain(english.be_present(agreement), ())
            case Tense.PRESENT:
                return EnglishChain(english.third_person(base) if agreement.third_singular else base, (), base)
            case Tense.PAST if base == "be":
                return EnglishChain(english.be_past(agreement), ())
            case Tense.PAST:
                return EnglishChain(past, (), base)
            case Tense.PERFECT:
                return EnglishChain(english.have_present(agreement), (participle,))
            case Tense.PLUPERFECT:
                return EnglishChain("had", (participle,))
            case Tense.FUTURE:
                return EnglishChain("will", (base,))
            case Tense.PROGRESSIVE:
                return EnglishChain(english.be_present(agreement), (english.gerund(base),))
            case Tense.SINCE:
                return EnglishChain(english.have_present(agreement), ("been", english.gerund(base)))
            case Tense.PASSIVE:
                return EnglishChain(english.be_past(agreement), (participle,))

    def _english_modal(self, modal: Modal, agreement: Agreement) -> EnglishChain:
        past = self.tense is Tense.PAST
        rest = (*modal.rest, self.verb.english[0])
        if modal is MAY:
            return EnglishChain(english.be_past(agreement) if past else english.be_present(agreement), rest)
        if modal.name not in INFLECTING:
            return EnglishChain(modal.english_past if past else modal.english_present, rest)
        base = modal.english_present
        present = english.third_person(base) if agreement.third_singular else base
        return EnglishChain(modal.english_past if past else present, rest, base)

    def name_english(self, forms: Sequence[str], supported: bool, at: str) -> Words:
        """Return the English verb forms as words; `supported` if the first one is a form of do that they need."""
        *before, verb = forms
        named = []
        for place, form in enumerate(before):
            if not self.modal or (supported and place == 0):
                named.append(self._auxiliary_word(form, at))
            elif form == "to":
                named.append(Word(form, (), f"{at}modal"))
            else:
                named.append(Word(form, (f"{at}modal",), f"{at}verb"))
        return (*named, Word(verb, (f"{at}verb",)))

    def _auxiliary_word(self, form: str, at: str) -> Word:
        return Word(form, (f"{at}auxiliary",), f"{at}modal" if self.modal else f"{at}verb")

    def german_bracket(self, agreement: Agreement) -> GermanBracket:  # noqa: PLR0911
        """Return the German verb forms for a subject."""
        infinitive, third, participle = self.verb.german
        if self.modal and self.modal.german:
            return GermanBracket(self._german_modal(self.modal.german, agreement), (self.infinitive,))
        match self.tense:
            case Tense.PAST if self._keeps_preterite:
                return GermanBracket(german.preterite(infinitive, agreement))
            case Tense.PAST | Tense.PERFECT:
                return GermanBracket(self._auxiliary(agreement), (participle,))
            case Tense.PLUPERFECT:
                auxiliary = "sein" if "sein" in self.verb.flags else "haben"
                return GermanBracket(german.preterite(auxiliary, agreement), (participle,))
            case Tense.FUTURE:
                return GermanBracket(german.present("werden", "wird", "wirst", agreement), (self.infinitive,))
            case Tense.PASSIVE:
                return GermanBracket(german.preterite("werden", agreement), (participle,))
            case _:
                finite = german.present(infinitive, third, self.verb.du, agreement)
                return GermanBracket(finite, prefix=self.verb.prefix)

    def _auxiliary(self, agreement: Agreement) -> str:
        if "sein" in self.verb.flags:
            return german.present("sein", "ist", "bist", agreement)
        return german.present("haben", "hat", "hast", agreement)

    def _german_modal(self, modal: str, agreement: Agreement) -> str:
        if modal in PRETERITE_FORM or self.tense is Tense.PAST:
            return german.preterite(modal, agreement)
        return german.present(modal, "", "", agreement)

    def german_order(self, agreement: Agreement, order: Order, at: str = "") -> tuple[Words, Words]:
        """Return the words that open and close the German verb bracket."""
        verb, to = f"{at}verb", f"{at}to"
        if order is Order.ZU:
            *separate, infinitive = german.zu_infinitive(self.verb.german[0], self.verb.prefix).split()
            return (), (*(Word(zu, (to,)) for zu in separate), Word(infinitive, (verb,) if separate else (verb, to)))
        bracket = self.german_bracket(agreement)
        closing = tuple(Word(form, (verb,)) for form in bracket.closing)
        if order is Order.LAST:
            return (), (*closing, self._finite_word(bracket, bracket.prefix + bracket.finite, at))
        prefix = (Word(bracket.prefix, (), verb),) if bracket.prefix else ()
        return (self._finite_word(bracket, bracket.finite, at),), closing or prefix

    def _finite_word(self, bracket: GermanBracket, form: str, at: str) -> Word:
        if not bracket.closing:
            return Word(form, (f"{at}verb",))
        if self.modal and self.modal.german:
            return Word(form, (f"{at}modal",), f"{at}verb")
        return self._auxiliary_word(form, at)
