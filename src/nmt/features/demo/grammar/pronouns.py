"""Pronouns: personal, expletive, interrogative, relative."""

from dataclasses import dataclass

from nmt.features.demo.grammar import german
from nmt.features.demo.grammar.features import Agreement, Case, Gender
from nmt.features.demo.grammar.words import Words, say

ENGLISH_PRONOUNS = {
    (1, False): ("I", "me"),
    (2, False): ("you", "you"),
    (1, True): ("we", "us"),
    (3, True): ("they", "them"),
}
ENGLISH_THIRD = {Gender.MASCULINE: ("he", "him"), Gender.FEMININE: ("she", "her"), Gender.NEUTER: ("it", "it")}


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun."""

    agreement: Agreement

    @property
    def light(self) -> bool:
        """Pronouns come early in German."""
        return True

    @property
    def definite(self) -> bool:
        """A pronoun is definite."""
        return True

    def english(self, case: Case, at: str = "") -> Words:
        """Return the subject or the object form."""
        agreement = self.agreement
        forms = ENGLISH_PRONOUNS.get((agreement.person, agreement.plural)) or ENGLISH_THIRD[agreement.gender]
        return say(forms[case is not Case.NOMINATIVE], f"{at}head")

    def german(self, case: Case, at: str = "") -> Words:
        """Return the form of the case."""
        agreement = self.agreement
        forms = german.PRONOUNS.get((agreement.person, agreement.plural)) or german.THIRD_PERSON[agreement.gender]
        return say(forms[case], f"{at}head")


@dataclass(frozen=True, slots=True)
class There:
    """The subject of `there is` and `es gibt`; the English verb agrees with the object, the German one with es."""

    plural: bool
    light: bool = True
    definite: bool = True

    @property
    def agreement(self) -> Agreement:
        """The German one: es."""
        return Agreement(3, False, Gender.NEUTER)

    def english(self, case: Case, at: str = "") -> Words:
        """Return the English expletive."""
        return say("there", f"{at}head")

    def german(self, case: Case, at: str = "") -> Words:
        """Return the German expletive."""
        return say("es", f"{at}head")


@dataclass(frozen=True, slots=True)
class Asked:
    """An interrogative or relative pronoun: who, what, whom, that."""

    agreement: Agreement
    human: bool
    relative: bool
    light: bool = False
    definite: bool = True

    def english(self, case: Case, at: str = "") -> Words:
        """Return who, whom, what or that."""
        if self.human:
            return say("who" if case is Case.NOMINATIVE else "whom", f"{at}head")
        return say("that" if self.relative else "what", f"{at}head")

    def german(self, case: Case, at: str = "") -> Words:
        """Return the relative pronoun of the agreement, or wer, wen, wem, was."""
        if self.relative:
            return say(german.relative(case, self.agreement.gender, self.agreement.plural), f"{at}head")
        return say(("wer", "wen", "wem")[case] if self.human else "was", f"{at}head")
