"""Build clauses about states: being, having, lying, costing, raining."""

from nmt.features.demo.grammar import english, german, lexicon
from nmt.features.demo.grammar.choosing import adjectives, candidates
from nmt.features.demo.grammar.clause_spec import PAST, STATE, ClauseSpec
from nmt.features.demo.grammar.clauses import Clause, Part, Role
from nmt.features.demo.grammar.determiners import AS_A_JOB, BARE, MANY, NO, POSSESSIVES, SOME, THE, THIS, A
from nmt.features.demo.grammar.events import POSTURES, STATIVE, Narrator, suits
from nmt.features.demo.grammar.features import Agreement, Case, Gender, Tense
from nmt.features.demo.grammar.lexicon import Adjective
from nmt.features.demo.grammar.phrases import Fixed, Nominal, NounPhrase, Prepositional, Pronoun, Than, There
from nmt.features.demo.grammar.things import SMALL_NUMERALS
from nmt.features.demo.grammar.verbgroup import WANT_TO, VerbGroup

IT = Pronoun(Agreement(3, False, Gender.NEUTER))
VERY = ("very", "sehr")
LASTING = tuple(verb for verb in lexicon.VERBS if "long" in verb.flags)
BUILT = tuple(verb for verb in lexicon.VERBS if "passive" in verb.flags)
FEELINGS = ("tired", "ill", "hungry", "thirsty", "happy", "sad", "angry", "worried", "nervous")
HAVE = lexicon.verb_named("have")
COUNTED_THINGS = (
    "dentist",
    "baker",
    "butcher",
    "doctor",
    "lawyer",
    "factory",
    "hospital",
    "library",
    "café",
    "museum",
    "hotel",
    "church",
    "restaurant",
    "theatre",
    "bridge",
    "park",
    "school",
    "castle",
)


class Describer(Narrator):
    """Builds clauses about states."""

    def feeling(self, subject: Nominal, tense: Tense, feelings: tuple[str, ...]) -> Clause:
        """Build a clause: someone is tired."""
        word = self.random.choice([word for word in lexicon.ADJECTIVES if word.english in feelings])
        return self.being(subject, word, tense, False)

    def being(
        self, subject: Nominal, word: Adjective, tense: Tense, negated: bool, degree: tuple[str, str] = VERY
    ) -> Clause:
        """Build a clause: something has a quality, perhaps to a high degree."""
        if negated or "absolute" in word.flags or (degree is VERY and self.chance(0.75)):
            degree = ("", "")
        phrase = Fixed(f"{degree[0]} {word.english}".strip(), f"{degree[1]} {word.german}".strip())
        return Clause(subject, VerbGroup(lexicon.BE, tense, negated=negated), (Part(Role.PREDICATE, phrase),))

    def quality(self) -> Clause:
        """Build a clause: the house is old; perhaps older than the church."""
        noun = self.noun(tuple(QUALIFIED))
        word = self.random.choice(adjectives(noun, predicative=True))
        self.used.add(word.english)
        plural = "pair" in noun.classes or (not noun.mass and self.chance(0.2))
        subject = NounPhrase(self.random.choice((THE, THE, THIS)), noun, plural)
        if "compare" in word.flags and self.chance(0.4):
            others = [
                other for other in candidates((kind(noun.classes),)) if other is not noun and word in adjectives(other)
            ]
            if others:
                standard = NounPhrase(THE, self.random.choice(others))
                more = Fixed(english.comparative(word.english), german.comparative(word.german))
                parts = (Part(Role.PREDICATE, more), Part(Role.STANDARD, Than(standard), Case.NOMINATIVE))
                return Clause(subject, VerbGroup(lexicon.BE), parts)
        living = bool(noun.classes & {"job", "person", "animal"})
        tense = Tense.PRESENT if living or self.chance(0.65) else Tense.PAST
        return self.being(subject, word, tense, self.chance(0.15))

    def job(self) -> Clause:
        """Build a clause: someone is, or becomes, a baker."""
        owner = self.random.choice(POSSESSIVES)
        subject = NounPhrase(owner, self.random.choice(MALE_RELATIVES)) if self.chance(0.6) else self.man()
        noun = self.noun(("job",))
        part = Part(Role.PREDICATE, NounPhrase(AS_A_JOB, noun), Case.NOMINATIVE)
        choice = self.one_of({"is": 40, "was": 20, "will": 15, "wants": 25})
        group = {
            "is": VerbGroup(lexicon.BE),
            "was": VerbGroup(lexicon.BE, Tense.PAST),
            "will": VerbGroup(lexicon.BECOME, Tense.FUTURE),
            "wants": VerbGroup(lexicon.BECOME, modal=WANT_TO),
        }[choice]
        return Clause(subject, group, (part,))

    def existence(self) -> Clause:
        """Build a clause: in this town there are three museums."""
        noun = self.noun(COUNTED_THINGS)
        determiner = self.random.choice((A, A, MANY, SOME, NO, *SMALL_NUMERALS))
        plural = determiner is not A and not (determiner is NO and self.chance(0.5))
        thing = NounPhrase(determiner, noun, plural, self.adjective(noun, 0.3))
        where = NounPhrase(self.random.choice((THIS, THE)), self.noun(("live",)))
        place = Part(Role.PLACE, Prepositional("in", "in", Case.DATIVE, where))
        tense = Tense.PRESENT if self.chance(0.7) else Tense.PAST
        return Clause(There(plural), VerbGroup(lexicon.EXIST, tense), (Part(Role.OBJECT, thing),), place)

    def posture(self) -> Clause:
        """Build a clause: something lies, stands or hangs somewhere."""
        verb = self.random.choice(POSTURES)
        subject = self.subject(verb.subjects)
        complement = verb.complements[0]
        where = NounPhrase(THE, self.noun(complement.classes))
        where = NounPhrase(THE, where.noun, False, self.adjective(where.noun, 0.3))
        phrase = Prepositional(complement.english, complement.german, complement.case, where)
        return Clause(subject, VerbGroup(verb, Tense.PROGRESSIVE), (Part(Role.OBLIQUE, phrase),))

    def state(self, subject: Nominal | None = None, question: bool = False) -> Clause:
        """Build a clause: someone knows, loves, needs, owns or wears something."""
        verb = self.random.choice([verb for verb in STATIVE if subject is None or suits(subject, verb)])
        subject = subject or self.doer(verb, ClauseSpec(question=question), STATE)
        mode = PAST if self.chance(0.25) and "presentonly" not in verb.flags else STATE
        return self.clause(ClauseSpec(time=False, adverbials=1, front=0, question=question), subject, verb, mode)

    def lasting(self) -> Clause:
        """Build a clause: someone has been doing something for three years."""
        verb = self.random.choice(LASTING)
        subject = self.doer(verb, ClauseSpec(), STATE)
        clause = self.clause(
            ClauseSpec(time=False, adverbials=1, front=0, negation=0, relatives=0), subject, verb, STATE
        )
        number = self.random.choice(lexicon.NUMBER)
        unit, einheit = self.random.choice((("years", "Jahren"), ("months", "Monaten"), ("weeks", "Wochen")))
        since = Fixed(f"for {number.english} {unit}", f"seit {number.german} {einheit}")
        if self.chance(0.3):
            year = self.random.randint(2000, 2019)
            since = Fixed(f"since {year}", f"seit dem Jahr {year}")
        return Clause(subject, VerbGroup(verb, Tense.SINCE), (*clause.parts, Part(Role.TIME, since)))

    def built(self) -> Clause:
        """Build a clause: the bridge was built in 1987."""
        verb = self.random.choice(BUILT)
        noun = self.noun(verb.complements[0].classes)
        subject = NounPhrase(self.random.choice((THE, THE, THIS)), noun, self.chance(0.15), self.adjective(noun, 0.3))
        parts = [Part(Role.TIME, self.year())] if self.chance(0.7) else []
        if self.chance(0.4) or not parts:
            agent = NounPhrase(self.random.choice((A, THE)), self.noun((AGENTS.get(verb.english[0], "writer"),)))
            agent = NounPhrase(agent.determiner, agent.noun, False, self.adjective(agent.noun, 0.4))
            parts.append(Part(Role.OBLIQUE, Prepositional("by", "von", Case.DATIVE, agent)))
        return Clause(subject, VerbGroup(verb, Tense.PASSIVE), tuple(parts))

    def price(self) -> Clause:
        """Build a clause: something costs an amount."""
        noun = self.noun(("clothing", "furniture", "toy", "device", "jewel"))
        plural = "pair" in noun.classes
        subject = NounPhrase(self.random.choice((THE, THIS)), noun, plural, self.adjective(noun, 0.4))
        amount = self.random.choice((20, 25, 30, 40, 45, 50, 60, 75, 80, 90, 100, 120, 150, 200, 250, 300))
        price = Part(Role.OBJECT, Fixed(f"{amount} euros", f"{amount} Euro"))
        tense = Tense.PRESENT if plural or self.chance(0.6) else Tense.PAST  # they cost: English does not say when
        return Clause(subject, VerbGroup(lexicon.COST, tense), (price,))

    def weather(self, tense: Tense, time: bool = True) -> Clause:
        """Build a clause: it rains."""
        use = {Tense.PAST: "past", Tense.FUTURE: "future"}.get(tense)
        parts: tuple[Part, ...] = ()
        if use and time and self.chance(0.6):
            parts = (Part(Role.TIME, self.date(use, lexicon.RAIN)),)
        return Clause(IT, VerbGroup(self.random.choice((lexicon.RAIN, lexicon.RAIN, lexicon.SNOW)), tense), parts)

    def lack(self, subject: Nominal, tense: Tense, missing: str) -> Clause:
        """Build a clause: someone has no time."""
        thing = NounPhrase(NO, lexicon.noun_named(missing))
        return Clause(subject, VerbGroup(HAVE, tense), (Part(Role.OBJECT, thing),))

    def owning(self, subject: Nominal, owned: str) -> Clause:
        """Build a clause: someone has time."""
        return Clause(subject, VerbGroup(HAVE), (Part(Role.OBJECT, NounPhrase(BARE, lexicon.noun_named(owned))),))


QUALIFIED = [
    "job",
    "person",
    "animal",
    "building",
    "furniture",
    "machine",
    "clothing",
    "text",
    "room",
    "place",
    "home",
    "ship",
    "soup",
    "fruit",
    "tale",
    "topic",
    "mail",
    "hard",
    "event",
    "film",
    "music",
    "street",
    "river",
    "mountain",
    "tool",
    "vessel",
    "heavy",
]
KINDS = ("building", "furniture", "machine", "clothing", "text", "room", "animal", "ship", "instrument", "hard")
AGENTS = {
    "write": "writer",
    "translate": "writer",
    "publish": "journalist",
    "renovate": "architect",
    "destroy": "storm",
}
MALE_RELATIVES = tuple(noun for noun in candidates(("family",)) if noun.pronoun == "he")


def kind(classes: frozenset[str]) -> str:
    """Return the class within which a noun is compared with others."""
    return next((name for name in KINDS if name in classes), "")
