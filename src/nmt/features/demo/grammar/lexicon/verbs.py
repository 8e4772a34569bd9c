"""Verbs: English parts | German parts | subjects | complements | marks.

English parts are base, past and past participle; a regular verb has the base only; `turn~on` has a particle.
German parts are infinitive, third person and participle; a weak verb has the infinitive only. `ein-laden` has a
separable prefix; `du:lädst` gives a second person that does not follow from the third.
Complements: `acc=classes`, `dat=classes`, `to=classes` (direction), `at=classes` (place), `predicate`,
`for/auf/acc=classes` (English preposition, German one, its case).
Marks: `@place` (class of places), `%manner` (English adverb) and the flags
  sein      perfect with sein                    sich      reflexive in German
  state     a state, not an event: no progressive, no sequence of events; `presentonly` never past
  passive   used in the passive                  long      can go on for years
  shift     recipient with `to` in English       for       can be done for someone
  with      can be done with someone             good, bad its effect on the mood
  chance    happens by accident: not wanted, planned or promised
  once      not a habit
  one       its object is one thing, not a number of things
  body      its object is one's own clothing
  adult     not for children
  stiff     not something people like to do
  make      creates or chooses its object, so the object has no owner yet
  thing     its subject is a thing, so no modal; `timed` always has a time, `slow` takes long
  cash      needs money             indoor, outdoor its place, for clauses about the weather
  household, party, office, tour   scenes of actions that belong together
"""

from nmt.features.demo.grammar import english, german
from nmt.features.demo.grammar.features import Case
from nmt.features.demo.grammar.lexicon.entries import Complement, Verb, rows

TRANSITIVE = """
read read read | lesen liest gelesen | person family | acc=text | @quiet %attentively %slowly indoor
write wrote written | schreiben schreibt geschrieben | person family | acc=writing | passive for indoor office make
buy bought bought | kaufen | person family | acc=fruit,grocery,clothing,furniture,gift,machine | @shop for cash tour
sell sold sold | verkaufen | person family | acc=machine,furniture,instrument,house,farm | @market adult once
cook | kochen | person family | acc=dish | @kitchen for %slowly indoor household make
bake baked baked | backen backt gebacken | person family | acc=baked | @kitchen for indoor household make
eat ate eaten | essen isst gegessen | person family | acc=food | @eat %slowly %quickly party
drink drank drunk | trinken trinkt getrunken | person family | acc=drink | @eat %slowly %quickly party
open | auf-machen | person family | acc=closable | %carefully stiff
close | zu-machen | person family | acc=closable | %quietly %carefully stiff
lock | ab-schließen schließt abgeschlossen | person family | acc=lockable | %carefully one stiff
turn~on | ein-schalten | person family | acc=device | one stiff
turn~off | aus-schalten | person family | acc=device | one stiff
clean | putzen | person family | acc=room,shoe,window | %thoroughly indoor one household
tidy~up tidied tidied | auf-räumen | person family | acc=room | %thoroughly %quickly indoor one household
wash | waschen wäscht gewaschen | person family | acc=washable | %thoroughly household
repair | reparieren | person family | acc=machine,roof,toy,instrument | for %quickly adult household
find found found | finden findet gefunden | person family | acc=small,collectible,pet | good @walk chance once
lose lost lost | verlieren verliert verloren | person family | acc=small | bad @place chance once
look~for | suchen | person family | acc=small,pet | @place
forget forgot forgotten | vergessen vergisst vergessen | person family | acc=small,appointment | bad chance
hide hid hidden | verstecken | person family | acc=small,parcel,letter | @room stiff
steal stole stolen | stehlen stiehlt gestohlen | thief | acc=small,art,car | chance once
choose chose chosen | aus-wählen | person family | acc=clothing,gift,furniture | for once make
bring brought brought | bringen bringt gebracht | person family | dat=person,family acc=mail,drink,parcel,vessel |
bring~along brought brought | mit-bringen bringt mitgebracht | person family | acc=gift,drink,salad |
fetch | holen | person family | acc=tool,drink,small | stiff
carry carried carried | tragen trägt getragen | person family | acc=heavy | %carefully
wear wore worn | tragen trägt getragen | person family | acc=clothing | state body
put~on put put | an-ziehen zieht angezogen | person family | acc=clothing | %quickly indoor body stiff
take~off took taken | aus-ziehen zieht ausgezogen | person family | acc=clothing | %quickly body stiff
see saw seen | sehen sieht gesehen | person family | acc=person,animal,ship | @place @walk event chance
hear heard heard | hören | person family | acc=song,noise | event chance
watch | beobachten | person family | acc=wild,ship,butterfly | @forest @zoo %attentively outdoor
visit | besuchen | person family | acc=person,family,museum,castle | good with one tour
meet met met | treffen trifft getroffen | person family | acc=person,family | @meet good event
invite | ein-laden lädt eingeladen du:lädst | person family | acc=person,family |
call | an-rufen ruft angerufen | person family | acc=person,family | office
pick~up | ab-holen | person family | acc=person,family,mail | @arrive
greet | begrüßen | person family | acc=person,family | %politely stiff
accompany accompanied accompanied | begleiten | person family | acc=person,family |
praise | loben | person family | acc=person,family |
wake woke woken | wecken | person family | acc=family | %quietly stiff
support | unterstützen | person family | acc=person,family |
interrupt | unterbrechen unterbricht unterbrochen | person family | acc=person,family | chance stiff
ask | fragen | person family | acc=person,family | %politely stiff
teach taught taught | unterrichten | teacher | acc=pupil,student,child | @school adult
examine | untersuchen | doctor | acc=patient,child,boy,girl | %thoroughly adult stiff
know knew known | kennen kennt gekannt | person family | acc=person,town,tale,song | state
love | lieben | person family | acc=person,family,pet,song | state
need | brauchen | person family | acc=clothing,small,furniture,tool,time,aid | state stiff
have had had | haben hat gehabt du:hast | person family | acc=pet,time,machine,house,idea,small | state
like | mögen mag gemocht du:magst | person family | acc=food,pet,farm,drink,sport,song | state presentonly
study studied studied | studieren | student family person | acc=studies | @university long state indoor
learn learnt learnt | lernen | person family | acc=subject | @learn long with indoor
understand understood understood | verstehen versteht verstanden | person family | acc=topic,language,joke,tale | state
solve | lösen | person family | acc=hard | %quickly good
discuss | besprechen bespricht besprochen | person family | acc=topic,contract | with @eat %calmly one adult office
check | prüfen | person family | acc=document,ticket,machine | %thoroughly adult office stiff
sign | unterschreiben unterschreibt unterschrieben | person family | acc=signable | one adult once office stiff
translate | übersetzen übersetzt übersetzt | person family | acc=text | %slowly passive for indoor adult office
publish | veröffentlichen | writer scientist journalist | acc=report,article,novel,poem,story | passive adult make
paint | malen | person family | acc=art,flower,animal | %slowly @walk indoor make
draw drew drawn | zeichnen | person family | acc=animal,building,flower | %carefully @walk outdoor
photograph | fotografieren | person family | acc=building,island,animal,flower | outdoor tour
sing sang sung | singen singt gesungen | person family | acc=tune | @sing %loudly %well with party
play | spielen | person family | acc=sport | @play %well with outdoor
build built built | bauen | person family | acc=house,boat,shelf | for slow cash adult make
renovate | renovieren | architect parents | acc=house,flat,castle,church,theatre,school | passive slow one adult
destroy | zerstören | storm | acc=house,roof,ship,tower,bridge | passive chance once
plant | pflanzen | person family | acc=plant,flower | @garden for outdoor make
water | gießen gießt gegossen | person family | acc=flower | outdoor household
feed fed fed | füttern | person family | acc=pet,farm | household
catch caught caught | fangen fängt gefangen | animal | acc=prey | %quickly chance
break broke broken | zerbrechen zerbricht zerbrochen | person family | acc=fragile | bad chance once
cut cut cut | schneiden schneidet geschnitten | person family | acc=cuttable | @kitchen %carefully stiff
fill | füllen | person family | acc=vessel | %carefully stiff
pack | packen | person family | acc=packable | %quickly tour
unpack | aus-packen | person family | acc=parcel,packable | %slowly household
order | bestellen | person family | acc=drink,dish | @restaurant @café for cash adult
pay~for paid paid | bezahlen | person family | acc=drink,clothing,ticket | cash stiff
taste | probieren | person family | acc=soup,salad,cheese,cake,sausage,ham |
win won won | gewinnen gewinnt gewonnen | person family | acc=prize | good event chance one once
receive | bekommen bekommt bekommen | person family | acc=mail,expected,parcel | good event chance one
accept | an-nehmen nimmt angenommen | person family | acc=offer |
cancel cancelled cancelled | ab-sagen | person family | acc=formal,appointment,festive | bad one stiff once
prepare | vor-bereiten bereitet vorbereitet | person family | acc=event,meal | %thoroughly one
organise | organisieren | person family | acc=festive | with for one adult once
plan planned planned | planen | person family | acc=festive,holiday | with one tour once
miss | verpassen | person family | acc=transport,appointment | bad event chance one once stiff
take took taken | nehmen nimmt genommen | person family | acc=transport | indoor one
park | parken | person family | acc=parkable | one adult stiff
rent | mieten | person family | acc=flat,car,boat | for cash adult once tour
cross | überqueren | person family | acc=crossing | %carefully one stiff
leave left left | verlassen verlässt verlassen | person family | acc=building,room,town | event one stiff
enter | betreten betritt betreten du:betrittst | person family | acc=building,room | %quietly one stiff
climb | besteigen besteigt bestiegen | person family | acc=mountain | with outdoor one once
collect | sammeln | person family | acc=collectible | with state outdoor
describe | beschreiben beschreibt beschrieben | person family | acc=person,picture,building,thief | stiff
look~at | betrachten | person family | acc=picture,building | %attentively
correct | korrigieren | teacher person | acc=mistake,report,letter | %thoroughly office stiff
return | zurück-geben gibt zurückgegeben | person family | acc=book,tool,money | stiff
save | sparen | person family | acc=money | long adult
earn | verdienen | person family | acc=money | adult state
throw~away threw thrown | weg-werfen wirft weggeworfen | person family | acc=press,shoe | stiff
count | zählen | person family | acc=collectible,money | %slowly
"""

RECIPIENT = """
give gave given | geben gibt gegeben | person family | dat=person,family acc=small,drink,light,book,money |
show showed shown | zeigen | person family | dat=person,family acc=picture,house,mail,garden |
send sent sent | schicken | person family | dat=person,family acc=mail |
lend lent lent | leihen leiht geliehen | person family | dat=person,family acc=book,tool,car,money | stiff
explain | erklären | person family | dat=person,family acc=topic | shift %calmly %well
recommend | empfehlen empfiehlt empfohlen | person family | dat=person,family acc=book,novel,film,dine | shift
tell told told | erzählen | person family | dat=person,family acc=tale |
introduce | vor-stellen | person family | dat=person,family acc=mate | shift once stiff
help | helfen hilft geholfen | person family | dat=person,family | @kitchen @garden
thank | danken | person family | dat=person,family | %politely stiff
congratulate | gratulieren | person family | dat=person,family | stiff
follow | folgen | person family animal | dat=person,family | sein %quietly stiff
answer | antworten | person family | dat=person,family | %politely %quickly office stiff
trust | vertrauen | person family | dat=person,family | state
agree~with | zu-stimmen | person family | dat=person,family | stiff
listen~to | zu-hören | person family | dat=person,family | %attentively
contradict | widersprechen widerspricht widersprochen | person family | dat=person,family | %politely stiff
belong~to | gehören | house car instrument furniture ship | dat=person,family | state
"""

OBLIQUE = """
wait | warten | person family | for/auf/acc=person,family,transport,mail,expected | @arrive %patiently
think thought thought | denken denkt gedacht | person family | of/an/acc=family,festive,holiday,person |
dream dreamt dreamt | träumen | person family | of/von/dat=holiday,festive,island,house | chance
talk | sprechen spricht gesprochen | person family | about/über/acc=topic,weather,festive,show | with %quietly party
laugh | lachen | person family | about/über/acc=joke,mistake,tale | %loudly chance party
complain | beschweren | person family | about/über/acc=noise,weather,invoice | sich %politely chance
look~forward | freuen | person family | to/auf/acc=festive,holiday,meal | sich state
remember | erinnern | person family | -/an/acc=person,tale,festive,family | sich state chance
take~care took taken | kümmern | person family | of/um/acc=pet,child,girl,farm,plant | sich
fall~in~love fell fallen | verlieben | person | with/in/acc=person | sich good event chance once
take~part took taken | teil-nehmen nimmt teilgenommen | person family | in/an/dat=race,meeting,exam |
start | beginnen beginnt begonnen | person family | with/mit/dat=task | one stiff
believe | glauben | person family | in/an/acc=idea,plan | state
go went gone | gehen geht gegangen | person family | to=place,building | sein with event
run ran run | laufen läuft gelaufen | person family | to=place,arrive | sein %quickly event
drive drove driven | fahren fährt gefahren | person family | to=town,land,arrive | sein with event adult
travel travelled travelled | reisen | person family | to=town,land | sein with cash
fly flew flown | fliegen fliegt geflogen | person family | to=town,land | sein with cash
live | wohnen | person family | at=live,town,home | state long
stay | bleiben bleibt geblieben | person family | at=stay,town | sein event chance
sit sat sat | sitzen sitzt gesessen | person family pet | on/auf/dat=seat | posture
lie lay lain | liegen liegt gelegen | lying | on/auf/dat=surface | posture
stand stood stood | stehen steht gestanden | standing | on/auf/dat=surface | posture
hang hung hung | hängen hängt gehangen | hanging | on/an/dat=wall | posture
lay laid laid | legen | person family | acc=lying on/auf/acc=surface | %carefully one stiff
put put put | stellen | person family | acc=standing on/auf/acc=surface | %carefully one stiff
"""

INTRANSITIVE = """
sleep slept slept | schlafen schläft geschlafen | person family pet |  | @sleep %well indoor
work | arbeiten | person family |  | @workplace long %hard with adult
rest | aus-ruhen | person family |  | @sleep @quiet sich indoor
laugh | lachen | person family |  | %loudly chance party
cry cried cried | weinen | young woman |  | %loudly %quietly chance
smile | lächeln | person family |  | event chance
dance | tanzen | person family |  | %well with party
swim swam swum | schwimmen schwimmt geschwommen | person family |  | @swim sein with %well outdoor tour
play | spielen | young pet |  | @play with outdoor
cook | kochen | person family |  | @kitchen %well with indoor household
sing sang sung | singen singt gesungen | person family bird |  | @sing %loudly %well party
hike | wandern | person family |  | @forest sein with outdoor tour
shop shopped shopped | ein-kaufen | person family |  | @shop @supermarket with
hurry hurried hurried | beeilen | person family |  | sich stiff
get~up got got | auf-stehen steht aufgestanden | person family |  | sein clock event stiff
wake~up woke woken | auf-wachen | person family |  | sein clock event chance
fall~asleep fell fallen | ein-schlafen schläft eingeschlafen | person family pet |  | sein event chance
have~breakfast had had | frühstücken | person family |  | @eat clock with
arrive | an-kommen kommt angekommen | person family transport ship |  | sein clock @arrive event chance
depart | ab-fahren fährt abgefahren | transport |  | sein clock event thing timed
begin began begun | beginnen beginnt begonnen | event show |  | clock event thing timed
take~place took taken | statt-finden findet stattgefunden | event |  | clock event thing timed
bark | bellen bellt gebellt | dog |  | %loudly chance
grow grew grown | wachsen wächst gewachsen | plant |  | sein %quickly state chance
bloom | blühen | flower |  | state @garden chance
ring rang rung | klingeln | ringing |  | event %loudly chance
shine shone shone | scheinen scheint geschienen | sun |  | state chance
come came come | kommen kommt gekommen | person family | home | sein clock event
go went gone | gehen geht gegangen | person family | home | sein event with
"""

WEATHER = """
rain | regnen | weather |  | weather
snow | schneien | weather |  | weather
"""

SPECIAL = """
be was been | sein ist gewesen du:bist |  |  | sein state
cost cost cost | kosten | | | state
become became become | werden wird geworden du:wirst | person family | predicate | sein
be was been | geben gibt gegeben |  |  | state
"""

CONTROL = """
try tried tried | versuchen | person family |  | control
decide | beschließen beschließt beschlossen | person family |  | control
promise | versprechen verspricht versprochen | person family |  | control
forget forgot forgotten | vergessen vergisst vergessen | person family |  | control past
hope | hoffen | person family |  | control that
believe | glauben | person family |  | that
know knew known | wissen weiß gewusst du:weißt | person family |  | that whether
say said said | sagen | person family |  | that
think thought thought | denken denkt gedacht | person family |  | that
ask | fragen | person family |  | whether
"""


def _complement(mark: str) -> Complement:
    kind, _, names = mark.partition("=")
    classes = tuple(name for name in names.split(",") if name)
    if "/" not in kind:
        return Complement(kind, classes, case=Case.DATIVE if kind in ("dat", "at") else Case.ACCUSATIVE)
    preposition, german_preposition, case = kind.split("/")
    return Complement(
        "oblique",
        classes,
        preposition.strip("-"),
        german_preposition,
        {"acc": Case.ACCUSATIVE, "dat": Case.DATIVE}[case],
    )


def _english_parts(cell: str) -> tuple[tuple[str, str, str], str]:
    head, *forms = cell.split()
    base, _, particle = head.partition("~")
    past, participle = forms if len(forms) == 2 else (forms or [english.regular_past(base)]) * 2
    return (base, past, participle), particle.replace("~", " ")


def _german_parts(cell: str) -> tuple[tuple[str, str, str], str, str]:
    head, *forms = cell.split()
    prefix, _, infinitive = head.rpartition("-")
    du = next((form[3:] for form in forms if form.startswith("du:")), "")
    parts = [form for form in forms if not form.startswith("du:")] or german.weak_parts(infinitive, prefix)
    return (infinitive, parts[0], parts[1]), prefix, du


def _verb(english_cell: str, german_cell: str, subjects: str, complements: str, marks: str) -> Verb:
    parts, particle = _english_parts(english_cell)
    german_parts, prefix, du = _german_parts(german_cell)
    words = marks.split()
    return Verb(
        name=f"{' '.join([parts[0], particle]).strip()}={prefix}{german_parts[0]}",
        english=parts,
        particle=particle,
        german=german_parts,
        prefix=prefix,
        du=du or german.second_person(german_parts[1]),
        subjects=tuple(subjects.split()),
        complements=tuple(_complement(mark) for mark in complements.split()),
        places=tuple(word[1:] for word in words if word.startswith("@")),
        manners=tuple(word[1:] for word in words if word.startswith("%")),
        flags=frozenset(word for word in words if word[0] not in "@%"),
    )


def _verbs(*tables: str) -> tuple[Verb, ...]:
    return tuple(_verb(*row) for table in tables for row in rows(table))


ACTIVITIES = _verbs(TRANSITIVE, RECIPIENT, OBLIQUE, INTRANSITIVE)
RAIN, SNOW = _verbs(WEATHER)
BE, COST, BECOME, EXIST = _verbs(SPECIAL)
MATRIX = _verbs(CONTROL)
ALL = (*ACTIVITIES, RAIN, SNOW, BE, COST, BECOME, EXIST, *MATRIX)


def named(name: str) -> Verb:
    """Return the first verb of this English base (with its particle)."""
    return next(verb for verb in ALL if " ".join([verb.english[0], verb.particle]).strip() == name)
