"""Determiners: articles, possessives and numbers, with their endings and those of the adjectives after them."""

from dataclasses import dataclass

from nmt.demo.grammar import german, lexicon
from nmt.demo.grammar.features import Case, Gender
from nmt.demo.grammar.german import Declension


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

    def in_german(self, case: Case, gender: Gender, plural: bool) -> str:
        """Return the German determiner, inflected."""
        if self.german == "der":
            return german.definite(case, gender, plural)
        ending = german.ein_ending if self.declension is Declension.MIXED else german.article_ending
        return self.german + (ending(case, gender, plural) if self.inflects else "")


WEAK, MIXED, STRONG = Declension
THE = Determiner("the", "the", "der", WEAK)
MEAL = Determiner("", "", "der", WEAK)
"""Bare in English, definite in German: dinner, das Abendessen."""
THIS = Determiner("this", "these", "dies", WEAK)
EVERY = Determiner("every", "", "jed", WEAK)
WHICH = Determiner("which", "which", "welch", WEAK)
ALL = Determiner("", "all", "all", WEAK)
A = Determiner("a", "", "ein", MIXED, definite=False)
NOT_A = Determiner("a", "any", "kein", MIXED, definite=False)
"""The object of a negated clause: English negates the verb, German the article."""
NO = Determiner("no", "no", "kein", MIXED, definite=False)
SOME = Determiner("", "some", "einig", STRONG, definite=False)
MANY = Determiner("", "many", "viel", STRONG, definite=False)
HOW_MANY = Determiner("", "how many", "wie viel", STRONG, definite=False)
BARE = Determiner("", "", "", STRONG, inflects=False, definite=False)
AS_A_JOB = Determiner("a", "", "", STRONG, inflects=False, definite=False)
"""He is a teacher: no article in German."""
NAMED = Determiner("", "", "", STRONG, inflects=False)
"""The determiner of what has a named owner: Anna's car, Annas Auto."""
POSSESSIVES = MY, YOUR, HIS, HER, OUR, THEIR = tuple(
    Determiner(english, english, stem, MIXED)
    for english, stem in zip(
        ("my", "your", "his", "her", "our", "their"), ("mein", "dein", "sein", "ihr", "unser", "ihr"), strict=True
    )
)
NUMERALS = tuple(
    Determiner("", number.english, number.german, STRONG, inflects=False, definite=False) for number in lexicon.NUMBER
)
