"""Build clauses about states: being, having, lying, costing, raining."""

from nmt.demo.grammar import english, german, lexicon
from nmt.demo.grammar.choosing import MALE_NAMES, adjectives
from nmt.demo.grammar.clauses import Clause, Part, Role
from nmt.demo.grammar.determiners import AS_A_JOB, BARE, MANY, NO, POSSESSIVES, SOME, THE, THIS, A
from nmt.demo.grammar.events import Narrator, suits
from nmt.demo.grammar.features import Agreement, Case, Gender, Tense
from nmt.demo.grammar.lexicon import Adjective
from nmt.demo.grammar.modes import ClauseSpec, Mode, plain
from nmt.demo.grammar.phrases import Fixed, Nominal, NounPhrase, Prepositional, Pronoun, Than, There
from nmt.demo.grammar.things import SMALL_NUMERALS
from nmt.demo.grammar.verbgroup import WANT_TO, VerbGroup

IT = Pronoun(Agreement(3, False, Gender.NEUTER))
VERY = ("very", "sehr")
FEELINGS = ("tired", "ill", "hungry", "thirsty", "happy", "sad", "angry", "worried", "nervous")
HAVE = lexicon.verb_named("have")
JOBS = (
    VerbGroup(lexicon.BE),
    VerbGroup(lexicon.BE, Tense.PAST),
    VerbGroup(lexicon.BECOME, Tense.FUTURE),
    VerbGroup(lexicon.BECOME, modal=WANT_TO),
)
PRICES = (20, 25, 30, 40, 45, 50, 60, 75, 80, 90, 100, 120, 150, 200, 250, 300)
MALE_RELATIVES = tuple(noun for noun in lexicon.nouns_of(("family",)) if noun.pronoun == "he")


class Describer(Narrator):
    """Builds clauses about states."""

    def present_or_past(self, present: float) -> Tense:
        """Draw the present, with this probability, or the past."""
        return Tense.PRESENT if self.chance(present) else Tense.PAST

    def feeling(self, subject: Nominal, tense: Tense, feelings: tuple[str, ...]) -> Clause:
        """Build a clause: someone is tired."""
        word = self.any_of([word for word in lexicon.ADJECTIVES if word.english in feelings])
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
        noun = self.noun(lexicon.GROUPS["quality"])
        word = self.any_of(adjectives(noun, predicative=True))
        self.used.add(word.english)
        plural = "pair" in noun.classes or (not noun.mass and self.chance(0.2))
        subject = NounPhrase(self.any_of((THE, THE, THIS)), noun, plural)
        if "compare" in word.flags and self.chance(0.4):
            kind = [name for name in lexicon.GROUPS["kind"] if name in noun.classes][:1]
            others = [each for each in lexicon.nouns_of(tuple(kind)) if each is not noun and word in adjectives(each)]
            if others:
                than = Part(Role.STANDARD, Than(NounPhrase(THE, self.any_of(others))), Case.NOMINATIVE)
                more = Fixed(english.comparative(word.english), german.comparative(word.german))
                return Clause(subject, VerbGroup(lexicon.BE), (Part(Role.PREDICATE, more), than))
        living = not noun.classes.isdisjoint(("job", "person", "animal"))
        tense = Tense.PRESENT if living else self.present_or_past(0.65)
        return self.being(subject, word, tense, self.chance(0.15))

    def job(self) -> Clause:
        """Build a clause: someone is, or becomes, a baker."""
        owner = self.any_of(POSSESSIVES)
        relative = self.chance(0.6)
        subject = NounPhrase(owner, self.any_of(MALE_RELATIVES)) if relative else self.name(MALE_NAMES)
        part = Part(Role.PREDICATE, NounPhrase(AS_A_JOB, self.noun(("job",))), Case.NOMINATIVE)
        return Clause(subject, self.one_of(dict(zip(JOBS, (40, 20, 15, 25), strict=True))), (part,))

    def existence(self) -> Clause:
        """Build a clause: in this town there are three museums."""
        noun = self.noun(lexicon.GROUPS["existing"])
        determiner = self.any_of((A, A, MANY, SOME, NO, *SMALL_NUMERALS))
        plural = determiner is not A and not (determiner is NO and self.chance(0.5))
        thing = NounPhrase(determiner, noun, plural, self.adjective(noun, 0.3))
        where = NounPhrase(self.any_of((THIS, THE)), self.noun(("live",)))
        place = Part(Role.PLACE, Prepositional("in", "in", Case.DATIVE, where))
        group = VerbGroup(lexicon.EXIST, self.present_or_past(0.7))
        return Clause(There(plural), group, (Part(Role.OBJECT, thing),), place)

    def posture(self) -> Clause:
        """Build a clause: something lies, stands or hangs somewhere."""
        verb = self.any_of(lexicon.verbs_with("posture"))
        subject = self.subject(verb.subjects)
        (complement,) = verb.complements
        noun = self.noun(complement.classes)
        where = NounPhrase(THE, noun, False, self.adjective(noun, 0.3))
        phrase = Prepositional(complement.english, complement.german, complement.case, where)
        return Clause(subject, VerbGroup(verb, Tense.PROGRESSIVE), (Part(Role.OBLIQUE, phrase),))

    def state(self, subject: Nominal | None = None, question: bool = False) -> Clause:
        """Build a clause: someone knows, loves, needs, owns or wears something."""
        verb = self.any_of([verb for verb in lexicon.verbs_with("state") if subject is None or suits(subject, verb)])
        subject = subject or self.doer(verb, Mode.STATE, question)
        mode = Mode.PAST if self.chance(0.25) and "presentonly" not in verb.flags else Mode.STATE
        return self.clause(ClauseSpec(time=False, adverbials=1, front=0, question=question), subject, verb, mode)

    def lasting(self) -> Clause:
        """Build a clause: someone has been doing something for three years."""
        verb = self.any_of(lexicon.verbs_with("long"))
        subject = self.doer(verb, Mode.STATE)
        clause = self.clause(plain(time=False, adverbials=1), subject, verb, Mode.STATE)
        number = self.any_of(lexicon.NUMBER)
        unit, einheit = self.any_of((("years", "Jahren"), ("months", "Monaten"), ("weeks", "Wochen")))
        since = Fixed(f"for {number.english} {unit}", f"seit {number.german} {einheit}")
        if self.chance(0.3):
            year = self.random.randint(2000, 2019)
            since = Fixed(f"since {year}", f"seit dem Jahr {year}")
        return Clause(subject, VerbGroup(verb, Tense.SINCE), (*clause.parts, Part(Role.TIME, since)))

    def built(self) -> Clause:
        """Build a clause: the bridge was built in 1987."""
        verb = self.any_of(lexicon.verbs_with("passive"))
        noun = self.noun(verb.complements[0].classes)
        subject = NounPhrase(self.any_of((THE, THE, THIS)), noun, self.chance(0.15), self.adjective(noun, 0.3))
        parts = []
        if self.chance(0.7):
            year = self.random.randint(1950, 2019)
            parts.append(Part(Role.TIME, Fixed(f"in {year}", f"im Jahr {year}")))
        if self.chance(0.4) or not parts:
            determiner = self.any_of((A, THE))
            noun = self.noun((lexicon.DONE_BY.get(verb.english[0], "writer"),))
            agent = NounPhrase(determiner, noun, False, self.adjective(noun, 0.4))
            parts.append(Part(Role.OBLIQUE, Prepositional("by", "von", Case.DATIVE, agent)))
        return Clause(subject, VerbGroup(verb, Tense.PASSIVE), tuple(parts))

    def price(self) -> Clause:
        """Build a clause: something costs an amount."""
        noun = self.noun(("clothing", "furniture", "toy", "device", "jewel"))
        plural = "pair" in noun.classes
        subject = NounPhrase(self.any_of((THE, THIS)), noun, plural, self.adjective(noun, 0.4))
        amount = self.any_of(PRICES)
        tense = Tense.PRESENT if plural else self.present_or_past(0.6)  # they cost: English does not say when
        price = Part(Role.OBJECT, Fixed(f"{amount} euros", f"{amount} Euro"))
        return Clause(subject, VerbGroup(lexicon.COST, tense), (price,))

    def weather(self, tense: Tense) -> Clause:
        """Build a clause: it rains."""
        return Clause(IT, VerbGroup(self.any_of((lexicon.RAIN, lexicon.RAIN, lexicon.SNOW)), tense))

    def having(self, subject: Nominal, name: str, tense: Tense = Tense.PRESENT, lacking: bool = False) -> Clause:
        """Build a clause: someone has time, or has none."""
        thing = NounPhrase(NO if lacking else BARE, lexicon.noun_named(name))
        return Clause(subject, VerbGroup(HAVE, tense), (Part(Role.OBJECT, thing),))
