"""Nouns: English (and an irregular plural) | German with article | plural, - for none | classes.

Persons have the pronoun that refers back to them (he, she). `weak` marks the n-declension, `at=` the prepositions
of a place: English, German where, German whereto. `pl` marks nouns used only in the plural.
"""

from nmt.features.demo.grammar.features import Gender
from nmt.features.demo.grammar.lexicon.entries import Noun, Place, rows

PEOPLE = """
man/men | der Mann | Männer | person he
woman/women | die Frau | Frauen | person she
child/children | das Kind | Kinder | person young
boy | der Junge | Jungen | person young he weak
girl | das Mädchen | Mädchen | person young
friend | der Freund | Freunde | person he mate
neighbour | der Nachbar | Nachbarn | person he weak mate
colleague | der Kollege | Kollegen | person he weak mate
boss/bosses | der Chef | Chefs | person he mate
teacher | der Lehrer | Lehrer | person he job
student | der Student | Studenten | person he weak
pupil | der Schüler | Schüler | person young he
professor | der Professor | Professoren | person he job
scientist | der Wissenschaftler | Wissenschaftler | person he job
doctor | der Arzt | Ärzte | person he job
dentist | der Zahnarzt | Zahnärzte | person he job
nurse | die Krankenschwester | Krankenschwestern | person she
patient | der Patient | Patienten | person he weak patient
baker | der Bäcker | Bäcker | person he job
butcher | der Metzger | Metzger | person he job
farmer | der Bauer | Bauern | person he weak job
gardener | der Gärtner | Gärtner | person he job
painter | der Maler | Maler | person he job
singer | der Sänger | Sänger | person he job
musician | der Musiker | Musiker | person he job
writer | der Schriftsteller | Schriftsteller | person he job
journalist | der Journalist | Journalisten | person he weak job
lawyer | der Anwalt | Anwälte | person he job
judge | der Richter | Richter | person he job
police officer | der Polizist | Polizisten | person he weak job
soldier | der Soldat | Soldaten | person he weak job
driver | der Fahrer | Fahrer | person he
pilot | der Pilot | Piloten | person he weak job
engineer | der Ingenieur | Ingenieure | person he job
architect | der Architekt | Architekten | person he weak job
artist | der Künstler | Künstler | person he job
waiter | der Kellner | Kellner | person he job
saleswoman/saleswomen | die Verkäuferin | Verkäuferinnen | person she
actress/actresses | die Schauspielerin | Schauspielerinnen | person she
queen | die Königin | Königinnen | person she
customer | der Kunde | Kunden | person he weak
guest | der Gast | Gäste | person he mate
tourist | der Tourist | Touristen | person he weak
mayor | der Bürgermeister | Bürgermeister | person he
mechanic | der Mechaniker | Mechaniker | person he job
thief/thieves | der Dieb | Diebe | thief he
mother | die Mutter | Mütter | family she
father | der Vater | Väter | family he
parents/parents | die Eltern | Eltern | family pl
brother | der Bruder | Brüder | family he
sister | die Schwester | Schwestern | family she
son | der Sohn | Söhne | family he young
daughter | die Tochter | Töchter | family she young
grandfather | der Großvater | Großväter | family he
grandmother | die Großmutter | Großmütter | family she
uncle | der Onkel | Onkel | family he
aunt | die Tante | Tanten | family she
grandson | der Enkel | Enkel | family he young
"""

ANIMALS = """
dog | der Hund | Hunde | animal pet
cat | die Katze | Katzen | animal pet
horse | das Pferd | Pferde | animal farm
cow | die Kuh | Kühe | animal farm
pig | das Schwein | Schweine | animal farm
goat | die Ziege | Ziegen | animal farm
duck | die Ente | Enten | animal farm
hen | das Huhn | Hühner | animal farm
rabbit | das Kaninchen | Kaninchen | animal pet
bird | der Vogel | Vögel | animal wild
mouse/mice | die Maus | Mäuse | animal prey
bear | der Bär | Bären | animal wild weak
lion | der Löwe | Löwen | animal wild weak
elephant | der Elefant | Elefanten | animal wild weak
monkey | der Affe | Affen | animal wild weak
fox/foxes | der Fuchs | Füchse | animal wild
wolf/wolves | der Wolf | Wölfe | animal wild
butterfly/butterflies | der Schmetterling | Schmetterlinge | prey insect
"""

FOOD = """
bread | das Brot | - | food baked cuttable
cake | der Kuchen | Kuchen | food baked cuttable sweet
biscuit | der Keks | Kekse | food baked sweet pair
pancake | der Pfannkuchen | Pfannkuchen | food dish sweet
apple | der Apfel | Äpfel | food fruit cuttable
pear | die Birne | Birnen | food fruit cuttable
orange | die Orange | Orangen | food fruit
banana | die Banane | Bananen | food fruit
cherry/cherries | die Kirsche | Kirschen | food fruit pair
strawberry/strawberries | die Erdbeere | Erdbeeren | food fruit pair
potato/potatoes | die Kartoffel | Kartoffeln | food dish cuttable vegetable
tomato/tomatoes | die Tomate | Tomaten | food cuttable vegetable
carrot | die Karotte | Karotten | food cuttable vegetable
onion | die Zwiebel | Zwiebeln | cuttable vegetable
egg | das Ei | Eier | food dish
soup | die Suppe | Suppen | food dish
salad | der Salat | Salate | food
sausage | die Wurst | Würste | food cuttable
cheese | der Käse | - | food cuttable
ham | der Schinken | - | food cuttable
meat | das Fleisch | - | food dish cuttable
rice | der Reis | - | food dish
butter | die Butter | - | grocery
salt | das Salz | - | grocery
sugar | der Zucker | - | grocery
flour | das Mehl | - | grocery
honey | der Honig | - | food grocery
chocolate | die Schokolade | - | food sweet
ice cream | das Eis | - | food sweet
water | das Wasser | - | drink
milk | die Milch | - | drink
coffee | der Kaffee | - | drink hot
tea | der Tee | - | drink hot
juice | der Saft | - | drink
beer | das Bier | - | drink alcohol
wine | der Wein | - | drink alcohol
lemonade | die Limonade | - | drink
"""

THINGS = """
book | das Buch | Bücher | text writing gift light lying
novel | der Roman | Romane | text writing gift lying
newspaper | die Zeitung | Zeitungen | text lying press
magazine | die Zeitschrift | Zeitschriften | text lying press
letter | der Brief | Briefe | text writing mail lying
postcard | die Postkarte | Postkarten | text writing mail lying
message | die Nachricht | Nachrichten | text writing mail
report | der Bericht | Berichte | text writing document
article | der Artikel | Artikel | text writing
poem | das Gedicht | Gedichte | text writing
story/stories | die Geschichte | Geschichten | tale text
fairy tale | das Märchen | Märchen | tale text
joke | der Witz | Witze | tale
contract | der Vertrag | Verträge | document signable
invoice | die Rechnung | Rechnungen | document
dictionary/dictionaries | das Wörterbuch | Wörterbücher | gift light lying
key | der Schlüssel | Schlüssel | small lying
ring | der Ring | Ringe | small gift jewel
wallet | die Brieftasche | Brieftaschen | small lying
watch/watches | die Uhr | Uhren | small gift machine
umbrella | der Regenschirm | Regenschirme | small
passport | der Reisepass | Reisepässe | small lying
ticket | die Fahrkarte | Fahrkarten | small lying
map | die Landkarte | Landkarten | light lying
pen | der Kugelschreiber | Kugelschreiber | small gift lying
pencil | der Bleistift | Bleistifte | small lying
doll | die Puppe | Puppen | gift toy
ball | der Ball | Bälle | gift toy
kite | der Drachen | Drachen | gift toy
present | das Geschenk | Geschenke | parcel heavy
parcel | das Paket | Pakete | parcel mail heavy closable
photo | das Foto | Fotos | picture gift lying
painting | das Gemälde | Gemälde | picture art hanging
poster | das Plakat | Plakate | picture hanging
camera | die Kamera | Kameras | gift machine device small
radio | das Radio | Radios | machine device
television | der Fernseher | Fernseher | machine device
computer | der Computer | Computer | machine device
lamp | die Lampe | Lampen | machine device furniture
washing machine | die Waschmaschine | Waschmaschinen | machine device
heating | die Heizung | - | device
phone | das Telefon | Telefone | machine ringing
alarm clock | der Wecker | Wecker | machine ringing
car | das Auto | Autos | machine car parkable washable
bicycle | das Fahrrad | Fahrräder | machine car washable
motorbike | das Motorrad | Motorräder | machine car washable
bus/buses | der Bus | Busse | transport
train | der Zug | Züge | transport
taxi | das Taxi | Taxis | transport
tram | die Straßenbahn | Straßenbahnen | transport
ship | das Schiff | Schiffe | ship
boat | das Boot | Boote | ship
coat | der Mantel | Mäntel | clothing washable hanging
jacket | die Jacke | Jacken | clothing washable hanging
shirt | das Hemd | Hemden | clothing washable
dress/dresses | das Kleid | Kleider | clothing washable hanging womens
skirt | der Rock | Röcke | clothing washable womens
pullover | der Pullover | Pullover | clothing washable
hat | der Hut | Hüte | clothing headwear
cap | die Mütze | Mützen | clothing headwear
scarf/scarves | der Schal | Schals | clothing headwear
boot | der Stiefel | Stiefel | clothing pair
shoe | der Schuh | Schuhe | clothing pair
glove | der Handschuh | Handschuhe | clothing pair small
bag | die Tasche | Taschen | heavy closable packable
suitcase | der Koffer | Koffer | heavy closable packable
backpack | der Rucksack | Rucksäcke | heavy closable packable
box/boxes | die Kiste | Kisten | heavy closable
basket | der Korb | Körbe | heavy
bottle | die Flasche | Flaschen | vessel closable standing
glass/glasses | das Glas | Gläser | vessel fragile standing
cup | die Tasse | Tassen | vessel fragile standing
plate | der Teller | Teller | fragile standing
bowl | die Schüssel | Schüsseln | vessel fragile standing
vase | die Vase | Vasen | vessel fragile standing gift
knife/knives | das Messer | Messer | tool lying
spoon | der Löffel | Löffel | tool lying
fork | die Gabel | Gabeln | tool lying
hammer | der Hammer | Hämmer | tool lying
ladder | die Leiter | Leitern | tool heavy
table | der Tisch | Tische | furniture surface
chair | der Stuhl | Stühle | furniture seat
sofa | das Sofa | Sofas | furniture seat
bed | das Bett | Betten | furniture seat
armchair | der Sessel | Sessel | furniture seat
bench/benches | die Bank | Bänke | furniture seat
cupboard | der Schrank | Schränke | furniture closable
shelf/shelves | das Regal | Regale | furniture surface
carpet | der Teppich | Teppiche | furniture
mirror | der Spiegel | Spiegel | furniture fragile hanging
door | die Tür | Türen | closable lockable
window | das Fenster | Fenster | closable
gate | das Tor | Tore | closable lockable
wall | die Wand | Wände | wall
roof/roofs | das Dach | Dächer | roof
piano | das Klavier | Klaviere | instrument
guitar | die Gitarre | Gitarren | instrument gift
violin | die Geige | Geigen | instrument
flute | die Flöte | Flöten | instrument gift
tree | der Baum | Bäume | plant
flower | die Blume | Blumen | plant flower gift
rose | die Rose | Rosen | plant flower gift
stamp | die Briefmarke | Briefmarken | collectible
coin | die Münze | Münzen | collectible
shell | die Muschel | Muscheln | collectible
"""

PLACES = """
park | der Park | Parks | place quiet play walk at=in/in/in
garden | der Garten | Gärten | place quiet play eat sleep own at=in/in/in
kitchen | die Küche | Küchen | room kitchen eat at=in/in/in
living room | das Wohnzimmer | Wohnzimmer | room quiet sleep at=in/in/in
bedroom | das Schlafzimmer | Schlafzimmer | room sleep at=in/in/in
bathroom | das Badezimmer | Badezimmer | room at=in/in/in
cellar | der Keller | Keller | room at=in/in/in
school | die Schule | Schulen | building place learn sing workplace at=at/in/in
university/universities | die Universität | Universitäten | building place learn workplace at=at/an/zu
library/libraries | die Bibliothek | Bibliotheken | stay building place quiet learn workplace at=in/in/in
museum | das Museum | Museen | building place meet at=in/in/in
theatre | das Theater | Theater | building place meet sing at=in/in/in
cinema | das Kino | Kinos | building place meet at=in/in/in
church/churches | die Kirche | Kirchen | building place sing at=in/in/in
hospital | das Krankenhaus | Krankenhäuser | stay building place workplace at=in/in/in
hotel | das Hotel | Hotels | stay building place sleep workplace at=in/in/in
restaurant | das Restaurant | Restaurants | building place eat meet workplace at=in/in/in
café | das Café | Cafés | building place eat meet quiet at=in/in/in
bakery/bakeries | die Bäckerei | Bäckereien | building place workplace at=in/in/in
supermarket | der Supermarkt | Supermärkte | building place workplace at=in/in/in
market | der Markt | Märkte | place shop meet at=at/auf/auf
department store | das Kaufhaus | Kaufhäuser | building place shop workplace at=in/in/in
factory/factories | die Fabrik | Fabriken | building workplace at=in/in/in
office | das Büro | Büros | stay place workplace desk own room at=in/in/in
station | der Bahnhof | Bahnhöfe | building place meet arrive at=at/an/zu
airport | der Flughafen | Flughäfen | building place meet arrive at=at/an/zu
bus stop | die Haltestelle | Haltestellen | place meet at=at/an/zu
stadium | das Stadion | Stadien | building place meet at=in/in/in
swimming pool | das Schwimmbad | Schwimmbäder | building place swim at=in/in/in
zoo | der Zoo | Zoos | place meet at=in/in/in
forest | der Wald | Wälder | place play walk at=in/in/in
beach/beaches | der Strand | Strände | place play walk quiet at=on/an/an
lake | der See | Seen | place walk at=at/an/an
village | das Dorf | Dörfer | stay live meet at=in/in/in
city/cities | die Stadt | Städte | live meet shop at=in/in/in
house | das Haus | Häuser | building home own
flat | die Wohnung | Wohnungen | home own
tower | der Turm | Türme | building
castle | das Schloss | Schlösser | building
bridge | die Brücke | Brücken | building crossing
street | die Straße | Straßen | crossing
river | der Fluss | Flüsse | crossing
mountain | der Berg | Berge | mountain
island | die Insel | Inseln | island
"""

ABSTRACT = """
question | die Frage | Fragen | topic
problem | das Problem | Probleme | topic hard
task | die Aufgabe | Aufgaben | topic hard
rule | die Regel | Regeln | topic
plan | der Plan | Pläne | topic
idea | die Idee | Ideen | idea
mistake | der Fehler | Fehler | mistake
riddle | das Rätsel | Rätsel | hard
answer | die Antwort | Antworten | expected
invitation | die Einladung | Einladungen | expected offer
offer | das Angebot | Angebote | offer
prize | der Preis | Preise | prize
race | das Rennen | Rennen | prize event
party/parties | die Party | Partys | event festive
wedding | die Hochzeit | Hochzeiten | event festive
concert | das Konzert | Konzerte | event festive
meeting | die Besprechung | Besprechungen | event formal
lecture | der Vortrag | Vorträge | event formal
exam | die Prüfung | Prüfungen | event formal
trip | die Reise | Reisen | festive
appointment | der Termin | Termine | appointment
holiday | der Urlaub | - | holiday
film | der Film | Filme | show
song | das Lied | Lieder | song tune
music | die Musik | - | song
noise | das Geräusch | Geräusche | noise
language | die Sprache | Sprachen | language
German | das Deutsch | - | subject
English | das Englisch | - | subject
French | das Französisch | - | subject
Spanish | das Spanisch | - | subject
medicine | die Medizin | - | studies
physics | die Physik | - | studies
chemistry | die Chemie | - | studies
history | die Geschichte | - | studies
football | der Fußball | - | sport
tennis | das Tennis | - | sport
chess | das Schach | - | sport
volleyball | der Volleyball | - | sport
weather | das Wetter | - | weather
sun | die Sonne | - | sun
moon | der Mond | - | sun
storm | der Sturm | Stürme | storm
fire | das Feuer | Feuer | storm
time | die Zeit | - | time
money | das Geld | - | money
help | die Hilfe | - | aid
breakfast | das Frühstück | - | meal
lunch | das Mittagessen | - | meal
dinner | das Abendessen | - | meal
"""


def _noun(english: str, german: str, german_plural: str, tags: str) -> Noun:
    singular, _, plural = english.partition("/")
    article, _, word = german.partition(" ")
    marks = tags.split()
    places = [Place(*mark[3:].split("/")) for mark in marks if mark.startswith("at=")]
    return Noun(
        english=singular,
        english_plural=plural or f"{singular}s",
        german=word,
        german_plural="" if german_plural == "-" else german_plural,
        gender=Gender(article),
        classes=frozenset([*(mark for mark in marks if not mark.startswith("at=")), singular.replace(" ", "_")]),
        place=places[0] if places else None,
    )


NOUNS = tuple(_noun(*row) for table in (PEOPLE, ANIMALS, FOOD, THINGS, PLACES, ABSTRACT) for row in rows(table))
BY_ENGLISH = {noun.english: noun for noun in NOUNS}


def of_class(*classes: str) -> tuple[Noun, ...]:
    """Return the nouns that belong to one of the classes, in the order of the tables."""
    return tuple(noun for noun in NOUNS if not noun.classes.isdisjoint(classes))
