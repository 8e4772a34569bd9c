"""Determiners: articles, possessives and numbers, with their endings and those of the adjectives after them."""

from dataclasses import dataclass

from nmt.features.demo.grammar import german
from nmt.features.demo.grammar.features import Case, Gender
from nmt.features.demo.grammar.german import Declension


@dataclass(frozen=True, slots=True)
class Determiner:
    """A word before adjective and noun."""

    singular: str
    """English word before a singular; `a` becomes `an` if needed."""
    plural: str
    german: str
    """German stem, or the whole word if it does not inflect; `der` is the article."""
    declension: Declension
    inflects: bool = True
    definite: bool = True

    def ending(self, case: Case, gender: Gender, plural: bool) -> str:
        """Return the German ending the determiner takes."""
        if not self.inflects:
            return ""
        if self.declension is Declension.MIXED:
            return german.ein_ending(case, gender, plural)
        return german.article_ending(case, gender, plural)

    def in_german(self, case: Case, gender: Gender, plural: bool) -> str:
        """Return the German determiner, inflected."""
        if self.german == "der":
            return german.definite(case, gender, plural)
        return self.german + self.ending(case, gender, plural)


THE = Determiner("the", "the", "der", Declension.WEAK)
MEAL = Determiner("", "", "der", Declension.WEAK)
"""Bare in English, definite in German: dinner, das Abendessen."""
THIS = Determiner("this", "these", "dies", Declension.WEAK)
EVERY = Determiner("every", "", "jed", Declension.WEAK)
WHICH = Determiner("which", "which", "welch", Declension.WEAK)
A = Determiner("a", "", "ein", Declension.MIXED, definite=False)
NOT_A = Determiner("a", "any", "kein", Declension.MIXED, definite=False)
"""The object of a negated clause: English negates the verb, German the article."""
NO = Determiner("no", "no", "kein", Declension.MIXED, definite=False)
BARE = Determiner("", "", "", Declension.STRONG, inflects=False, definite=False)
SOME = Determiner("", "some", "einig", Declension.STRONG, definite=False)
MANY = Determiner("", "many", "viel", Declension.STRONG, definite=False)
HOW_MANY = Determiner("", "how many", "wie viel", Declension.STRONG, definite=False)
ALL = Determiner("", "all", "all", Declension.WEAK)
MY = Determiner("my", "my", "mein", Declension.MIXED)
YOUR = Determiner("your", "your", "dein", Declension.MIXED)
HIS = Determiner("his", "his", "sein", Declension.MIXED)
HER = Determiner("her", "her", "ihr", Declension.MIXED)
OUR = Determiner("our", "our", "unser", Declension.MIXED)
THEIR = Determiner("their", "their", "ihr", Declension.MIXED)


def numeral(english_word: str, german_word: str) -> Determiner:
    """Return the determiner of a cardinal number above one."""
    return Determiner("", english_word, german_word, Declension.STRONG, inflects=False, definite=False)
