"""English inflection: rules, and lists of exceptions."""

from nmt.features.demo.grammar.features import Agreement, Tense

VOWELS = "aeiou"
DOUBLING = {"forget", "begin"}
"""Verbs of more than one syllable that double their last consonant."""
CONSONANT_SOUND = ("university", "uni", "use", "euro", "one")
VOWEL_SOUND = ("hour", "honest")

BE_PRESENT = {(1, False): "am", (2, False): "are", (3, False): "is"}


def article(word: str) -> str:
    """Return the indefinite article before `word`."""
    if word.startswith(VOWEL_SOUND):
        return "an"
    return "an" if word[0].lower() in VOWELS and not word.startswith(CONSONANT_SOUND) else "a"


def _doubles(base: str) -> bool:
    """Return whether the last consonant doubles before -ed and -ing."""
    syllables = sum(letter in VOWELS and base[i - 1] not in VOWELS for i, letter in enumerate(base) if i) + (
        base[0] in VOWELS
    )
    closed = len(base) > 2 and base[-1] not in VOWELS + "wxy" and base[-2] in VOWELS and base[-3] not in VOWELS
    return base in DOUBLING or (closed and syllables == 1)


def regular_past(base: str) -> str:
    """Return the past tense and participle of a regular verb."""
    if base.endswith("e"):
        return base + "d"
    return base + base[-1] * _doubles(base) + "ed"


def third_person(base: str) -> str:
    """Return the third person singular of the present."""
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2] not in VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s")


def gerund(base: str) -> str:
    """Return the form in -ing."""
    if base == "lie":
        return "lying"
    if base == "travel":
        return "travelling"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + base[-1] * _doubles(base) + "ing"


def be_present(agreement: Agreement) -> str:
    """Return am, are or is."""
    return "are" if agreement.plural else BE_PRESENT[agreement.person, False]


def be_past(agreement: Agreement) -> str:
    """Return was or were."""
    return "were" if agreement.plural or agreement.person == 2 else "was"


def have_present(agreement: Agreement) -> str:
    """Return have or has."""
    return "has" if agreement.third_singular else "have"


def do_support(tense: Tense, agreement: Agreement) -> str:
    """Return the form of `do` that carries negation and questions."""
    if tense is Tense.PAST:
        return "did"
    return "does" if agreement.third_singular else "do"


def comparative(adjective: str) -> str:
    """Return the comparative of an adjective."""
    if adjective.endswith("y") and len(adjective) < 8:
        return adjective[:-1] + "ier"
    if adjective.endswith("e") and len(adjective) < 7:
        return adjective + "r"
    if len(adjective) > 6:
        return f"more {adjective}"
    return adjective + adjective[-1] * _doubles(adjective) + "er"
