"""German inflection: rules, and lists of exceptions."""

from enum import Enum

from nmt.demo.grammar.features import Agreement, Case, Gender

INSEPARABLE = ("be", "emp", "ent", "er", "ge", "ver", "zer", "wider", "unter", "über")
MASCULINE, FEMININE, NEUTER = Gender
STRONG = {
    MASCULINE: ("er", "en", "em", "es"),
    FEMININE: ("e", "e", "er", "er"),
    NEUTER: ("es", "es", "em", "es"),
}
STRONG_PLURAL = ("e", "e", "en", "er")
DEFINITE = {
    MASCULINE: ("der", "den", "dem", "des"),
    FEMININE: ("die", "die", "der", "der"),
    NEUTER: ("das", "das", "dem", "des"),
}
DEFINITE_PLURAL = ("die", "die", "den", "der")
PRONOUNS = {(1, False): ("ich", "mich", "mir"), (2, False): ("du", "dich", "dir"), (1, True): ("wir", "uns", "uns")}
PRONOUNS |= {(3, True): ("sie", "sie", "ihnen")}
THIRD_PERSON = {MASCULINE: ("er", "ihn", "ihm"), FEMININE: ("sie", "sie", "ihr"), NEUTER: ("es", "es", "ihm")}
REFLEXIVE = {(1, False): "mich", (2, False): "dich", (1, True): "uns"}
"""Reflexive pronouns that are not sich."""
CONTRACTIONS = {"in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "bei dem": "beim", "von dem": "vom"}
CONTRACTIONS |= {"zu dem": "zum", "zu der": "zur"}
UMLAUT_COMPARATIVES = {"alt", "jung", "groß", "lang", "kurz", "stark", "warm", "kalt", "klug", "arm", "schwach"}
IRREGULAR_COMPARATIVES = {"hoch": "höher", "teuer": "teurer"}
IRREGULAR_STEMS = {"hoch": "hoh", "teuer": "teur"}
UMLAUTS = str.maketrans("aou", "äöü")

PRESENT = {
    "sein": ("bin", "bist", "ist"),
    "haben": ("habe", "hast", "hat"),
    "werden": ("werde", "wirst", "wird"),
    "wissen": ("weiß", "weißt", "weiß"),
    "können": ("kann", "kannst", "kann"),
    "müssen": ("muss", "musst", "muss"),
    "wollen": ("will", "willst", "will"),
    "dürfen": ("darf", "darfst", "darf"),
    "mögen": ("mag", "magst", "mag"),
}
"""Irregular presents in the singular; the plural is the infinitive except for sein."""
PRETERITE = {"sein": "war", "haben": "hatte", "werden": "wurde", "können": "konnte", "müssen": "musste"}
PRETERITE |= {"wollen": "wollte", "dürfen": "durfte", "sollen": "sollte", "möchten": "möchte", "geben": "gab"}
"""Preterites, and two modals used in a form that looks like one (sollte, möchte)."""


class Declension(Enum):
    """Declension of an adjective; the word before it decides."""

    WEAK = "weak"
    MIXED = "mixed"
    STRONG = "strong"


def article_ending(case: Case, gender: Gender, plural: bool) -> str:
    """Return the ending of dieser, jeder, welcher, viele, einige."""
    return STRONG_PLURAL[case] if plural else STRONG[gender][case]


def ein_ending(case: Case, gender: Gender, plural: bool) -> str:
    """Return the ending of ein, kein and the possessives."""
    bare = not plural and (
        (gender is not Gender.FEMININE and case is Case.NOMINATIVE)
        or (gender is Gender.NEUTER and case is Case.ACCUSATIVE)
    )
    return "" if bare else article_ending(case, gender, plural)


def definite(case: Case, gender: Gender, plural: bool) -> str:
    """Return the definite article."""
    return DEFINITE_PLURAL[case] if plural else DEFINITE[gender][case]


def relative(case: Case, gender: Gender, plural: bool) -> str:
    """Return the relative pronoun (never needed in the genitive)."""
    return "denen" if plural and case is Case.DATIVE else definite(case, gender, plural)


def adjective_ending(declension: Declension, case: Case, gender: Gender, plural: bool) -> str:
    """Return the ending of an attributive adjective."""
    if declension is Declension.STRONG or (declension is Declension.MIXED and not ein_ending(case, gender, plural)):
        genitive = case is Case.GENITIVE and not plural and gender is not Gender.FEMININE
        return "en" if genitive else article_ending(case, gender, plural)
    direct = case is Case.NOMINATIVE or (case is Case.ACCUSATIVE and gender is not Gender.MASCULINE)
    return "e" if direct and not plural else "en"


def adjective(word: str, ending: str) -> str:
    """Return an adjective with its ending."""
    stem = IRREGULAR_STEMS.get(word, word)
    return stem + (ending[1:] if stem.endswith("e") else ending)


def comparative(word: str) -> str:
    """Return the comparative of an adjective, without an ending."""
    if word in IRREGULAR_COMPARATIVES:
        return IRREGULAR_COMPARATIVES[word]
    stem = word.translate(UMLAUTS) if word in UMLAUT_COMPARATIVES else word
    return stem + ("r" if stem.endswith("e") else "er")


def genitive(word: str) -> str:
    """Return the genitive singular of a strong masculine or neuter noun."""
    if word.endswith(("s", "ß", "x", "z")):
        return word + "es"
    vowels = [letter in "aeiouäöüy" for letter in word.lower()]
    syllables = sum(now and not before for before, now in zip([False, *vowels], vowels, strict=False))
    return word + ("es" if syllables == 1 and not vowels[-1] else "s")


def contract(preposition: str, phrase: str) -> str:
    """Put a preposition before a phrase, contracted with a definite article if German does so."""
    article, _, rest = phrase.partition(" ")
    contracted = CONTRACTIONS.get(f"{preposition} {article}")
    return f"{contracted} {rest}" if contracted and rest else f"{preposition} {phrase}"


def _stem(infinitive: str) -> str:
    return infinitive[:-1] if infinitive.endswith(("ern", "eln")) else infinitive[:-2]


def weak_parts(infinitive: str, prefix: str) -> list[str]:
    """Return the third person singular and the participle of a weak verb."""
    stem = _stem(infinitive)
    link = "e" if stem.endswith(("d", "t", "chn", "ffn", "gn")) else ""
    bare = infinitive.endswith("ieren") or infinitive.startswith(INSEPARABLE)
    return [f"{stem}{link}t", f"{prefix}{'' if bare else 'ge'}{stem}{link}t"]


def second_person(third: str) -> str:
    """Return the form with du of verbs that derive it from the third person."""
    stem = third[:-1]
    return stem + ("t" if stem.endswith(("s", "ß", "z", "x")) else "st")


def present(infinitive: str, agreement: Agreement, third: str = "", du: str = "") -> str:
    """Return the present of a verb; a regular one needs its principal parts."""
    if agreement.plural:
        return "sind" if infinitive == "sein" else infinitive
    first = f"{infinitive[:-3]}le" if infinitive.endswith("eln") else f"{_stem(infinitive)}e"
    return PRESENT.get(infinitive, (first, du, third))[agreement.person - 1]


def preterite(infinitive: str, agreement: Agreement) -> str:
    """Return the preterite of the few verbs that keep it."""
    stem = PRETERITE[infinitive]
    if agreement.plural:
        return stem + ("n" if stem.endswith("e") else "en")
    return stem + "st" if agreement.person == 2 else stem
