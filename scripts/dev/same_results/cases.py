"""The cases: commands of `nmt` in one folder, the files whose content is their result, and the text for them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Commands and their results: the files named here, and what `translate` and `score` print."""

    name: str
    commands: tuple[Words, ...]
    files: Words = ()
    """Patterns of the files with results."""
    needs: Words = ()
    """Cases whose corpora and runs this one uses."""
    processes: int = 1
    """Processes of each command."""
    old: bool = False
    """Whether both versions continue with the files that the first one has written."""


SMALL = (
    "runtime.device=cpu", "runtime.threads=1", "runtime.workers=1", "engine=torch",
    "model.layers=2", "model.d_model=32", "model.d_ff=64", "model.heads=2",
    "training.batch_tokens=300", "training.warmup_steps=4", "training.learning_rate=1e-2", "training.log_every=1",
    "training.valid_every=8", "training.valid_sentences=4", "training.save_every=8", "decoding.extra_length=6",
)  # fmt: skip
"""The settings of all commands, which later ones of the same name replace."""
EVALUATED = ("data.valid=[text/valid.en,text/valid.de]", "data.test=[text/test.en,text/test.de]")
TOY = (
    "data=files", "data.corpus=toy", "data.train=[text/train.en,text/train.de]", *EVALUATED,
    "data.train_alignments=text/train.links", "data.test_alignments=text/test.links", "tokenizer.vocab_size=120",
    "data.max_pieces=100",
)  # fmt: skip
MIXTURE = (
    "data=files", "data.corpus=mixture", "data.train=[text/train.en,text/train.de]", *EVALUATED,
    "tokenizer.vocab_size=130", "data.tag=@plain@", "data.weight=2",
    "data.mixture.more.train=[text/more.en,text/more.de]", "data.mixture.more.tag=@more@",
    "data.mixture.shouted.train=[text/shouted.en,text/shouted.de]", "data.mixture.shouted.weight=0.5",
)  # fmt: skip
FINE = (
    "data=files",
    "data.corpus=fine",
    "data.train=[text/fine.en,text/fine.de]",
    *EVALUATED,
    "tokenizer.vocab_size=110",
)
TREES = (
    "experiment=parsing/demo", "data.source=trees", "data.corpus=trees", "data.train=[text/train.mrg]",
    "data.valid=[text/valid.mrg]", "data.test=[text/test.mrg]", "tokenizer.vocab_size=80", "evaluation.splits=[test]",
    "training.valid_sentences=0",
)  # fmt: skip
CORPORA = {"toy": TOY, "mixture": MIXTURE, "fine": FINE, "trees": TREES}
TRAINED: dict[str, Words] = {
    "plain": ("toy", "runtime.precision=fp32"),
    "bf16": ("toy", "runtime.precision=bf16"),
    "mixture": (
        "mixture", "noise.bpe_dropout=0.2",
    ),
    "guided": ("toy", "training.guided_weight=0.1"),
    "regularised": (
        "toy", "training.ema=0.9", "model.attention_dropout=0.1",
        "model.activation_dropout=0.1", "training.optimizer=muon",
    ),
    "decoder_only": (
        "toy", "model.architecture=decoder_only", "model.positions=alibi",
    ),
    "trees": ("trees", "training.learning_rate=2e-2"),
    "fine_tuned": ("fine", "training.init_from=plain", "training.init_vocabulary=new", "training.freeze=[encoder]"),
    "two_processes": ("toy",),
    "muon": (
        "toy", "training.optimizer=muon", "training.schedule=cosine", "model.positions=rotary", "model.norm=rms",
        "model.norm_placement=pre", "model.activation=swiglu", "model.initialization=small", "model.kv_heads=1",
    ),
    "micro_batches": (
        "toy", "model.positions=learned", "training.device_tokens=120", "training.clip_norm=1",
        "training.weight_decay=0.01", "training.schedule=linear", "model.tie_embeddings=false",
    ),
}  # fmt: skip
"""The name of the corpus and the further settings of each run."""
DECODED: dict[str, Words] = {
    "beam": (),
    "nbest": ("decoding.nbest=3", "decoding.no_repeat_ngram=2"),
    "sampling": (
        "decoding.strategy=sample", "decoding.nbest=3", "decoding.top_k=20", "decoding.temperature=0.8",
    ),
    "terms": ("decoding.terms=text/terms.tsv", "decoding.beam=8"),
    "bayes_risk": ("decoding.strategy=mbr", "decoding.candidates=12"),
    "alignments": ("decoding.alignments=true", "decoding.nbest=2"),
}  # fmt: skip
"""The settings of translations by the plain run."""


def _prepared(name: str) -> Case:
    """Return the case that prepares a corpus."""
    return Case(name=f"data_{name}", commands=(("data", *SMALL, *CORPORA[name]),), files=(f"data/{name}/*",))


def _trained(name: str) -> Case:
    """Return the case that trains a run."""
    corpus, *settings = TRAINED[name]
    command = ("train", *SMALL, *CORPORA[corpus], *settings, "training.steps=16", f"name={name}")
    needs = [f"data_{corpus}"]
    needs += [each.partition("=")[2] for each in settings if each.startswith("training.init_from=")]
    processes = 2 if name == "two_processes" else 1
    return Case(name=name, commands=(command,), files=_training_results(name), needs=tuple(needs), processes=processes)


def _training_results(run: str) -> Words:
    return f"outputs/{run}/metrics.jsonl", f"outputs/{run}/checkpoints/last/model.safetensors"


def _resumed(name: str) -> Case:
    """Return the case that trains a run of the first version further."""
    corpus, *settings = TRAINED[name]
    command = ("train", *SMALL, *CORPORA[corpus], *settings, "training.steps=24", f"name={name}")
    return Case(name=f"old_{name}", commands=(command,), files=_training_results(name), needs=(name,), old=True)


def _using(run: str, *settings: str, command: str = "translate") -> Words:
    """Return a command that uses the last checkpoint of a run."""
    common = (command, *SMALL, *CORPORA[TRAINED[run][0]], f"name={run}", "checkpoint=last")
    return *common, "input=text/test.en", "translate.format=jsonl", *settings


def _decoding_cases() -> list[Case]:
    """Return the cases of translation, evaluation and scoring."""
    plain = [Case(name=name, commands=(_using("plain", *words),), needs=("plain",)) for name, words in DECODED.items()]
    ensemble = _using("plain", "decoding.ensemble=[outputs/bf16/checkpoints/last]")
    guided = _using("guided", "translate.alignments=guided.links")
    tags = _using("mixture", "input=text/tagged.en", "translate.format=tsv")
    score = _using("plain", "input=text/scored.tsv", command="score")
    trees = _using("trees", "decoding.beam=4")
    made = _using("plain", "decoding.strategy=sample", "output=made", "synthesize.shard_lines=5")
    average = ("average", *SMALL, *TOY, "name=plain", "averaging.last=2")
    evaluation = _using("plain", "checkpoint=averaged", command="eval")
    return [
        *plain,
        Case(name="ensemble", commands=(ensemble,), needs=("plain", "bf16")),
        Case(name="guided_links", commands=(guided,), files=("guided.links",), needs=("guided",)),
        Case(name="mixture_translated", commands=(tags,), needs=("mixture",)),
        Case(name="decoder_only_translated", commands=(_using("decoder_only"),), needs=("decoder_only",)),
        Case(name="score", commands=(score,), needs=("plain",)),
        Case(name="trees_translated", commands=(trees,), needs=("trees",)),
        Case(name="trees_eval", commands=(_using("trees", command="eval"),), files=_eval("trees"), needs=("trees",)),
        Case(name="synthesize", commands=(("synthesize", *made[1:]),), files=("made/*.jsonl",), needs=("plain",)),
        Case(name="average_and_eval", commands=(average, evaluation), files=_eval("plain"), needs=("plain",)),
    ]


def _eval(run: str) -> Words:
    return f"outputs/{run}/eval/**/*.json", f"outputs/{run}/eval/**/*.txt"


def _old_cases() -> list[Case]:
    """Return the cases in which both versions continue with the files of the first one."""
    used = (("data", *SMALL, *TOY), _using("plain"), _using("plain", command="eval"))
    return [
        Case(name="old_files", commands=used, files=(*_eval("plain"), "data/toy/*"), needs=("plain",), old=True),
        *(_resumed(name) for name in ("plain", "mixture", "regularised")),
    ]


CASES = {
    case.name: case
    for case in (
        *map(_prepared, CORPORA), *map(_trained, TRAINED), *_decoding_cases(), *_old_cases(),
    )
}  # fmt: skip
"""The cases by name, in an order in which each stands after those that it needs."""


def with_needed(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names and those that they need, in order; all if there are no names."""
    chosen: set[str] = set()
    waiting = list(names or CASES)
    while waiting:
        name = waiting.pop()
        chosen.add(name)
        waiting += CASES[name].needs
    return [case for name, case in CASES.items() if name in chosen]


NOUNS = {"man": "Mann", "king": "Koenig", "stone": "Stein", "tree": "Baum", "dog": "Hund", "letter": "Brief",
         "table": "Tisch", "garden": "Garten"}  # fmt: skip
ADJECTIVES = {"old": "alten", "young": "jungen", "red": "roten", "green": "gruenen", "small": "kleinen"}
VERBS = {"sees": "gesehen", "finds": "gefunden", "paints": "gemalt", "sells": "verkauft", "seeks": "gesucht"}
NEW_NOUNS = {"engine": "Motor", "wheel": "Reifen", "driver": "Fahrer", "lorry": "Lastwagen", "road": "Weg"}
"""Nouns of the text on which a model of the other text is fine-tuned."""


class Sentence(NamedTuple):
    """A sentence with its translation."""

    source: str
    target: str
    links: str
    """The word alignment in Pharaoh format."""
    tree: str
    """The constituency tree of the source."""


def sentences(count: int, seed: int, nouns: dict[str, str] = NOUNS) -> list[Sentence]:
    """Return different sentences of a grammar whose target puts the verb last."""
    draws = random.Random(seed)
    found: dict[str, Sentence] = {}
    while len(found) < count:
        adjectives = [draws.choice([*ADJECTIVES, ""]) for _ in range(2)]
        made = _sentence(adjectives, draws.choices(list(nouns), k=2), draws.choice(list(VERBS)), nouns)
        found[made.source] = made
    return list(found.values())


def _sentence(adjectives: Sequence[str], chosen: Sequence[str], verb: str, nouns: dict[str, str]) -> Sentence:
    first, second = (
        [("DT", "the"), *([("JJ", adjective)] if adjective else []), ("NN", noun)]
        for adjective, noun in zip(adjectives, chosen, strict=True)
    )
    source = [word for _, word in (*first, ("VBZ", verb), *second, (".", "."))]
    target = ["den", *source[1 : len(first)], "hat", "den", *source[len(first) + 2 : -1], verb, "."]
    words = {**nouns, **ADJECTIVES, **VERBS}
    places = [*range(len(first)), len(source) - 1, *range(len(first) + 1, len(source) - 1), len(source)]
    phrases = [f"(NP {' '.join(f'({tag} {word})' for tag, word in phrase)})" for phrase in (first, second)]
    return Sentence(
        " ".join(source),
        " ".join(words.get(word, word) for word in target),
        " ".join(f"{number}-{place}" for number, place in enumerate(places)),
        f"(S {phrases[0]} (VP (VBZ {verb}) {phrases[1]}) (. .))",
    )


def write_text(folder: Path) -> None:
    """Write the text of all cases."""
    folder.mkdir(parents=True)
    made = sentences(620, seed=1)
    for name, part in (("test", made[:8]), ("valid", made[8:20]), ("train", made[20:420]), ("more", made[420:])):
        _write(folder, name, part)
    _write(folder, "fine", sentences(150, seed=2, nouns=NEW_NOUNS))
    shouted = [each._replace(source=each.source.upper(), target=each.target.upper()) for each in made[420:440]]
    _write(folder, "shouted", shouted)
    tested = made[:8]
    files = {
        "terms.tsv": ["the\tdas", "old\turalten", "dog\tKoeter"],
        "scored.tsv": [f"{each.source}\t{each.target}" for each in tested],
        "tagged.en": [f"{'@more@' if number % 2 else '@plain@'} {each.source}" for number, each in enumerate(tested)],
        "one_column.tsv": [tested[0].source],
    }
    for name, lines in files.items():
        _write_lines(folder / name, lines)


def _write(folder: Path, name: str, part: Sequence[Sentence]) -> None:
    for ending, lines in zip(("en", "de", "links", "mrg"), zip(*part, strict=True), strict=True):
        _write_lines(folder / f"{name}.{ending}", lines)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
