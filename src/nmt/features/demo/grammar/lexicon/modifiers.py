"""Adjectives, adverbs, numbers and names.

Adjectives: English | German | classes of nouns, `-class` for excluded ones | flags: `compare` has a
comparative, `state` and `mood` are temporary, `predicative` is used only after `is`, `absolute` excludes `very`.
"""

from nmt.features.demo.grammar.lexicon.entries import Adjective, Adverb, rows

ADJECTIVE_TABLE = """
old | alt | person -young animal building furniture machine clothing text art home tree instrument ship | compare
young | jung | person -young animal | compare
big | groß | animal building furniture plant room heavy place home ship toy | compare
small | klein | animal building furniture plant room heavy place home ship child toy tool | compare
new | neu | machine clothing furniture text instrument ship small tool toy home picture idea offer
friendly | freundlich | person pet | compare
polite | höflich | person
clever | klug | person pet | compare
brave | mutig | person pet
rich | reich | man woman job | compare
famous | berühmt | job actress
lazy | faul | person cat
hard-working | fleißig | person -patient -guest -thief
patient | geduldig | person
curious | neugierig | person pet
nervous | nervös | person horse
strong | stark | man boy farmer soldier horse bear lion elephant | compare
shy | schüchtern | person
lonely | einsam | person
nice | nett | person
tired | müde | person pet horse | state
ill | krank | patient child pet horse cow | state
hungry | hungrig | person animal | state
thirsty | durstig | person animal | state
happy | glücklich | person | mood
sad | traurig | person | mood
angry | wütend | person | mood
worried | besorgt | person | mood
dangerous | gefährlich | lion bear wolf
wild | wild | lion bear wolf monkey fox horse | absolute
black | schwarz | pet clothing car horse cow packable vase | absolute
white | weiß | pet clothing car horse flower vase washing_machine | absolute
red | rot | clothing car flower packable toy apple furniture vase | absolute
blue | blau | clothing car packable toy furniture vase vessel | absolute
green | grün | clothing car packable toy furniture door vessel | absolute
yellow | gelb | clothing flower car packable toy | absolute
brown | braun | pet horse clothing packable cow | absolute
grey | grau | cat horse clothing car packable | absolute
beautiful | schön | flower plant clothing garden park city village island castle picture jewel beach lake vase song
modern | modern | building furniture room machine
expensive | teuer | clothing machine jewel furniture instrument home hotel restaurant | compare
cheap | billig | clothing machine furniture hotel restaurant | compare
comfortable | bequem | seat shoe boot | compare
heavy | schwer | heavy | compare
empty | leer | vessel packable box street | predicative absolute
full | voll | vessel packable box basket | predicative absolute
broken | kaputt | machine toy furniture | predicative absolute
dirty | schmutzig | clothing car window room fragile tool | predicative
clean | sauber | clothing room fragile window | predicative
fresh | frisch | bread fruit vegetable milk egg meat salad
sweet | süß | fruit lemonade
ripe | reif | fruit tomato
delicious | lecker | soup cake biscuit pancake salad ice_cream | absolute
hot | heiß | soup hot
cold | kalt | drink soup | compare
warm | warm | coat jacket pullover scarf room
interesting | interessant | text topic tale museum lecture idea show offer
exciting | spannend | tale novel book race film
boring | langweilig | text lecture film meeting tale
long | lang | text street river bridge trip meeting lecture | compare
short | kurz | text tale trip meeting lecture song
important | wichtig | document mail topic meeting exam appointment
difficult | schwierig | hard exam language question | compare
easy | einfach | hard exam language question | compare
good | gut | idea friend plan hotel restaurant answer offer
secret | geheim | message plan document | absolute
funny | lustig | tale film song
strange | seltsam | noise message question idea
loud | laut | noise music | compare
quiet | ruhig | park street village hotel beach | compare
wide | breit | street river | compare
narrow | schmal | street bridge bed
deep | tief | river lake | compare
high | hoch | mountain tower tree wall | compare
sharp | scharf | knife
round | rund | table carpet mirror box | absolute
wonderful | wunderbar | trip concert holiday party wedding | absolute
"""

MANNERS = """
slowly | langsam
quickly | schnell
carefully | vorsichtig
attentively | aufmerksam
quietly | leise
loudly | laut
well | gut
thoroughly | gründlich
politely | höflich
calmly | ruhig
patiently | geduldig
hard | hart
"""

FREQUENCIES = """
often | oft
always | immer
never | nie
sometimes | manchmal
rarely | selten
usually | meistens
"""

TIMES = """
yesterday | gestern | past
yesterday evening | gestern Abend | past
yesterday morning | gestern Morgen | past
the day before yesterday | vorgestern | past
last week | letzte Woche | past
last month | letzten Monat | past slow
last year | letztes Jahr | past slow
last summer | letzten Sommer | past slow
last winter | letzten Winter | past slow
this morning | heute Morgen | past
tomorrow | morgen | future
tomorrow morning | morgen früh | future
tomorrow evening | morgen Abend | future
the day after tomorrow | übermorgen | future
next week | nächste Woche | future
next month | nächsten Monat | future slow
next year | nächstes Jahr | future slow
next summer | nächsten Sommer | future slow
soon | bald | future
tonight | heute Abend | future
today | heute | past future
on Monday | am Montag | past future
on Tuesday | am Dienstag | past future
on Wednesday | am Mittwoch | past future
on Thursday | am Donnerstag | past future
on Friday | am Freitag | past future
on Saturday | am Samstag | past future
on Sunday | am Sonntag | past future
in the morning | am Morgen | past future
in the afternoon | am Nachmittag | past future
in the evening | am Abend | past future habit
at the weekend | am Wochenende | past future habit
every day | jeden Tag | habit
every morning | jeden Morgen | habit
every evening | jeden Abend | habit
every week | jede Woche | habit
every year | jedes Jahr | year
in January | im Januar | month
in March | im März | month
in May | im Mai | month
in July | im Juli | month
in August | im August | month
in October | im Oktober | month
in December | im Dezember | month
"""

COMMENTS = """
unfortunately | leider | sad
perhaps | vielleicht
probably | wahrscheinlich
of course | natürlich
luckily | zum Glück | lucky
finally | endlich | lucky
"""

NUMBERS = """
two | zwei
three | drei
four | vier
five | fünf
six | sechs
seven | sieben
eight | acht
nine | neun
ten | zehn
eleven | elf
twelve | zwölf
"""

WOMEN = [
    "Anna",
    "Maria",
    "Laura",
    "Julia",
    "Sophie",
    "Lena",
    "Clara",
    "Emma",
    "Sarah",
    "Lisa",
    "Martha",
    "Eva",
    "Nina",
    "Paula",
    "Helena",
]
MEN = [
    "Peter",
    "Paul",
    "Martin",
    "Daniel",
    "Michael",
    "David",
    "Jan",
    "Simon",
    "Robert",
    "Stefan",
    "Oliver",
    "Anton",
    "Karl",
    "Emil",
    "Ben",
]

TOWNS = """
Berlin | Berlin
Hamburg | Hamburg
Munich | München
Cologne | Köln
Frankfurt | Frankfurt
Dresden | Dresden
Vienna | Wien
Zurich | Zürich
London | London
Paris | Paris
Rome | Rom
Prague | Prag
Warsaw | Warschau
Venice | Venedig
"""

LANDS = """
Italy | Italien
France | Frankreich
Spain | Spanien
Poland | Polen
Sweden | Schweden
Greece | Griechenland
Austria | Österreich
Denmark | Dänemark
"""


def _adverbs(table: str) -> tuple[Adverb, ...]:
    return tuple(Adverb(row[0], row[1], frozenset(row[2].split() if len(row) > 2 else ())) for row in rows(table))


ADJECTIVES = tuple(
    Adjective(row[0], row[1], tuple(row[2].split()), frozenset(" ".join(row[3:]).split()))
    for row in rows(ADJECTIVE_TABLE)
)
MANNER = {adverb.english: adverb for adverb in _adverbs(MANNERS)}
FREQUENCY = _adverbs(FREQUENCIES)
TIME = _adverbs(TIMES)
COMMENT = _adverbs(COMMENTS)
NUMBER = _adverbs(NUMBERS)
TOWN = _adverbs(TOWNS)
LAND = _adverbs(LANDS)
