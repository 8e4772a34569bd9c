"""English inflection: rules, and lists of exceptions."""

from nmt.demo.grammar.features import Agreement, Gender, Tense

VOWELS = "aeiou"
DOUBLING = {"forget", "begin"}
"""Verbs of more than one syllable that double their last consonant."""
GERUNDS = {"lie": "lying", "travel": "travelling"}
MODALS = frozenset({"will", "can", "could", "should", "would"})
FORMS_OF_DO = ("do", "does", "did")
CONSONANT_SOUND = ("university", "uni", "use", "euro", "one")
VOWEL_SOUND = ("hour", "honest")

SUBJECT_AND_OBJECT = {(1, False): ("I", "me"), (2, False): ("you", "you"), (1, True): ("we", "us")}
SUBJECT_AND_OBJECT |= {(3, True): ("they", "them")}
THIRD_PERSON = dict(zip(Gender, (("he", "him"), ("she", "her"), ("it", "it")), strict=True))


def article(word: str) -> str:
    """Return the indefinite article before `word`."""
    if word.startswith(VOWEL_SOUND):
        return "an"
    return "an" if word[0].lower() in VOWELS and not word.startswith(CONSONANT_SOUND) else "a"


def _doubles(base: str) -> bool:
    """Return whether the last consonant doubles before -ed and -ing."""
    vowels = "".join("v" if letter in VOWELS else " " for letter in base)
    closed = vowels.endswith(" v ") and base[-1] not in "wxy"
    return base in DOUBLING or (closed and len(vowels.split()) == 1)


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
    if base in GERUNDS:
        return GERUNDS[base]
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + base[-1] * _doubles(base) + "ing"


def be_past(agreement: Agreement) -> str:
    """Return was or were."""
    return "were" if agreement.plural or agreement.person == 2 else "was"


def present(base: str, agreement: Agreement) -> str:
    """Return the present of a verb; modals do not inflect."""
    if base == "be":
        return "are" if agreement.plural else ("am", "are", "is")[agreement.person - 1]
    return third_person(base) if agreement.third_singular and base not in MODALS else base


def do_support(tense: Tense, agreement: Agreement) -> str:
    """Return the form of `do` that carries negation and questions."""
    if tense is Tense.PAST:
        return "did"
    return present("do", agreement)


def comparative(adjective: str) -> str:
    """Return the comparative of an adjective."""
    if adjective.endswith("y") and len(adjective) < 8:
        return adjective[:-1] + "ier"
    if adjective.endswith("e") and len(adjective) < 7:
        return adjective + "r"
    if len(adjective) > 6:
        return f"more {adjective}"
    return adjective + adjective[-1] * _doubles(adjective) + "er"


def possessive(owner: str) -> str:
    """Return the ending of the possessive of a word."""
    return "'" if owner.endswith("s") else "'s"
