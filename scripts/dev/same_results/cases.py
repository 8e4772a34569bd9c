"""The cases: commands of `nmt` in one folder, the files whose content is their result, and the text for them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.demo.source import draw
from nmt.parsing.trees import bracketed

Words = tuple[str, ...]


class Case(NamedTuple):
    """Commands and their results: the files named here, and what `translate` and `score` print."""

    commands: tuple[Words, ...]
    files: Words = ()
    """Patterns of the files with results."""
    needs: Words = ()
    """Cases whose corpora and runs this one uses."""
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
    "data=files", "data.corpus=fine", "data.train=[text/fine.en,text/fine.de]", *EVALUATED, "tokenizer.vocab_size=110",
)  # fmt: skip
TREES = (
    "experiment=parsing/demo", "data.source=trees", "data.corpus=trees", "data.train=[text/train.mrg]",
    "data.valid=[text/valid.mrg]", "data.test=[text/test.mrg]", "tokenizer.vocab_size=200", "evaluation.splits=[test]",
    "training.valid_sentences=0",
)  # fmt: skip
CORPORA = {"toy": TOY, "mixture": MIXTURE, "fine": FINE, "trees": TREES}
TRAINED: dict[str, Words] = {
    "plain": ("toy", "runtime.precision=fp32"),
    "bf16": ("toy", "runtime.precision=bf16"),
    "mixture": ("mixture", "noise.bpe_dropout=0.2"),
    "guided": ("toy", "training.guided_weight=0.1"),
    "decoder_only": ("toy", "model.architecture=decoder_only", "model.positions=alibi", "training.schedule=cosine"),
    "trees": ("trees", "training.learning_rate=2e-2"),
    "fine_tuned": ("fine", "training.init_from=plain", "training.init_vocabulary=new", "training.freeze=[encoder]"),
    "two_processes": ("toy",),
    "muon": (
        "toy", "training.optimizer=muon", "model.positions=rotary", "model.norm=rms",
        "model.norm_placement=pre", "model.activation=swiglu", "model.initialization=small", "model.kv_heads=1",
        "model.attention_dropout=0.1", "model.activation_dropout=0.1",
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
    "sampling": ("decoding.strategy=sample", "decoding.nbest=3", "decoding.top_k=20", "decoding.temperature=0.8"),
    "terms": ("decoding.terms=text/terms.tsv", "decoding.beam=8"),
    "bayes_risk": ("decoding.strategy=mbr", "decoding.candidates=12"),
    "alignments": ("decoding.alignments=true", "decoding.nbest=2"),
}  # fmt: skip
"""The settings of translations by the plain run."""


TWO_PROCESSES = ("two_processes",)
"""Runs that two processes train."""


def _trained(name: str, steps: int = 16, *, old: bool = False) -> Case:
    """Return the case that trains a run, or trains a run of the first version further."""
    corpus, *settings = TRAINED[name]
    command = ("train", *SMALL, *CORPORA[corpus], *settings, f"training.steps={steps}", f"name={name}")
    starts = [each.partition("=")[2] for each in settings if each.startswith("training.init_from=")]
    files = (f"outputs/{name}/metrics.jsonl", f"outputs/{name}/checkpoints/last/model.safetensors")
    return Case((command,), files, (name,) if old else (f"data_{corpus}", *starts), old)


def _using(run: str, *settings: str, command: str = "translate") -> Words:
    """Return a command that uses the last checkpoint of a run."""
    common = (command, *SMALL, *CORPORA[TRAINED[run][0]], f"name={run}", "checkpoint=last")
    return *common, "input=text/test.en", "translate.format=jsonl", *settings


def _scores(run: str) -> Words:
    return f"outputs/{run}/eval/**/*.json", f"outputs/{run}/eval/**/*.txt"


CASES = {
    **{f"data_{name}": Case((("data", *SMALL, *words),), (f"data/{name}/*",)) for name, words in CORPORA.items()},
    **{name: _trained(name) for name in TRAINED},
    **{name: Case((_using("plain", *words),), needs=("plain",)) for name, words in DECODED.items()},
    "ensemble": Case(
        (_using("plain", "decoding.ensemble=[outputs/bf16/checkpoints/last]"),), needs=("plain", "bf16")
    ),
    "guided_links": Case((_using("guided", "translate.alignments=guided.links"),), ("guided.links",), ("guided",)),
    "mixture_translated": Case(
        (_using("mixture", "input=text/tagged.en", "translate.format=tsv"),), needs=("mixture",)
    ),
    "decoder_only_translated": Case((_using("decoder_only"),), needs=("decoder_only",)),
    "score": Case((_using("plain", "input=text/scored.tsv", command="score"),), needs=("plain",)),
    "trees_translated": Case((_using("trees", "decoding.beam=4"),), needs=("trees",)),
    "trees_eval": Case((_using("trees", command="eval"),), _scores("trees"), ("trees",)),
    "synthesize": Case(
        (_using("plain", "decoding.strategy=sample", "output=made", "synthesize.shard_lines=5", command="synthesize"),),
        ("made/*.jsonl",), ("plain",),
    ),
    "average_and_eval": Case(
        (("average", *SMALL, *TOY, "name=plain", "averaging.last=2"),
         _using("plain", "checkpoint=averaged", command="eval")),
        _scores("plain"), ("plain",),
    ),
    "old_files": Case(
        (("data", *SMALL, *TOY), _using("plain"), _using("plain", command="eval")),
        (*_scores("plain"), "data/toy/*"), ("plain",), old=True,
    ),
    **{f"old_{name}": _trained(name, 24, old=True) for name in ("plain", "mixture", "muon")},
}  # fmt: skip
"""The cases by name, in an order in which each stands after those that it needs."""


def with_needed(names: Sequence[str]) -> dict[str, Case]:
    """Return the cases of these names and those that they need, in order; all if there are no names."""
    chosen: set[str] = set()
    waiting = list(names or CASES)
    while waiting:
        name = waiting.pop()
        chosen.add(name)
        waiting += CASES[name].needs
    return {name: case for name, case in CASES.items() if name in chosen}


def write_text(folder: Path) -> None:
    """Write the text of all cases: source, target, word alignments and trees of the demo's sentences."""
    folder.mkdir(parents=True)

    def write(name: str, lines: Iterable[str]) -> None:
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    made, fine = draw(1, 620, 0, 0)["train"], draw(2, 150, 0, 0)["train"]
    parts = {"test": made[:8], "valid": made[8:20], "train": made[20:420], "more": made[420:], "fine": fine}
    for name, part in parts.items():
        write(f"{name}.en", [each.pair[0] for each in part])
        write(f"{name}.de", [each.pair[1] for each in part])
        links = (sorted(each.alignment().sure) for each in part)
        write(f"{name}.links", [" ".join(f"{source}-{target}" for source, target in each) for each in links])
        write(f"{name}.mrg", [bracketed(each.tree()) for each in part])
    write("shouted.en", [each.pair[0].upper() for each in made[420:440]])
    write("shouted.de", [each.pair[1].upper() for each in made[420:440]])
    write("terms.tsv", ["the\tdas", "old\turalten", "dog\tKoeter"])
    write("scored.tsv", ["\t".join(each.pair) for each in made[:8]])
    write("tagged.en", [f"{('@plain@', '@more@')[index % 2]} {each.pair[0]}" for index, each in enumerate(made[:8])])
