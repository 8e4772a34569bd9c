"""Compare the speed of nmt and its peers on this machine, taking turns in one run.

    .venv/bin/python scripts/bench machine            # what to expect of this machine; the default of make bench
    .venv/bin/python scripts/bench setup              # create the peers' environments in .bench/
    .venv/bin/python scripts/bench train              # training: tokens/s, fraction of the peak, memory
    .venv/bin/python scripts/bench train --device cuda --shapes base,big --batch-tokens 25000 --engines ours,huggingface
    .venv/bin/python scripts/bench minutes --minutes 10        # a peer's sacreBLEU after some minutes of training
    .venv/bin/python scripts/bench decode --run outputs/demo --threads 1,2 --cpus native,avx2

Settings after the options choose the corpus, which is prepared as by `make data`; the default is the demo corpus.

All trainers use the same word pieces, one shared vocabulary and models of the same shape: tied embeddings, dropout
0.1, label smoothing 0.1, Adam, post-norm (eole only supports pre-norm). Each measurement runs in a process of its own.
Tokens are source and target tokens including end marks but not padding. The fraction of the peak divides the FLOPs of
the model by those of a large matrix product, measured in the same run. `--ours` gives settings to nmt only.
`--cpus avx2` uses only the instructions of most laptops.

Each result is printed as it comes, as JSON on standard error.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import decode
import machine
import minutes
import train
from corpus import SHAPES
from engines import CPUS, ENGINES, PEERS, Bench, setup

from nmt.compute.cores import computing_threads
from nmt.errors import UserError

PRECISIONS = ("fp32", "bf16")


def main() -> int:
    """Run the command; return the exit code."""
    options = _parser().parse_args()
    if options.command == "setup":
        return setup(options.engines, options.peers)
    bench = Bench(options.peers.absolute(), options.threads[0], options.cpus[0])
    try:
        options.measure(options, bench)
    except UserError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    threads = (computing_threads(),)
    common.add_argument("--threads", type=_counts, default=threads, help=f"default: {threads[0]}")
    common.add_argument("--cpus", type=_some_of(CPUS), default=("native",), help="native, or avx2")
    common.add_argument("--peers", type=Path, default=PEERS, help="folder of the peers' environments")
    corpus = argparse.ArgumentParser(add_help=False)
    corpus.add_argument("overrides", nargs="*", default=[], help="settings, such as experiment=multi30k")
    corpus.add_argument("--ours", action="append", default=[], metavar="KEY=VALUE", help="a setting for nmt only")
    commands = parser.add_subparsers(dest="command", required=True)
    peers = [name for name, engine in ENGINES.items() if engine.packages]
    command = commands.add_parser("setup", parents=[common], help="create the peers' environments")
    command.add_argument("engines", nargs="*", type=lambda name: _some_of(peers)(name)[0], default=peers)

    def add(name: str, measure: Callable[..., None], description: str) -> argparse.ArgumentParser:
        parents = [common] if name == "machine" else [common, corpus]
        command = commands.add_parser(name, parents=parents, help=description)
        command.set_defaults(measure=measure)
        return command

    command = add("machine", machine.measure, "what to expect of this machine, by the demo")
    command.add_argument("--seconds", type=float, default=20.0, help="length of the measurement of training")
    command = add("train", train.measure, "training speed")
    command.add_argument("--engines", type=_some_of(train.TRAINERS), default=train.TRAINERS)
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default=PRECISIONS)
    command.add_argument("--shapes", type=_some_of(SHAPES), default=("small",))
    command.add_argument("--batch-tokens", type=int, default=4096)
    command.add_argument("--rounds", type=_count, default=3)
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    command.add_argument("--seconds", type=float, default=30.0, help="length of the measurement")
    command.add_argument("--warmup", type=float, default=5.0, help="seconds of training before the measurement")
    command = add("minutes", minutes.measure, "a peer's sacreBLEU after some minutes of training")
    command.add_argument("--minutes", type=float, default=10.0)
    command.add_argument("--precision", choices=PRECISIONS, default="fp32")
    command.add_argument("--shape", choices=SHAPES, default="small")
    command.add_argument("--batch-tokens", type=int, default=1024)
    command.add_argument("--rate", type=float, default=7e-4, help="peak learning rate")
    command.add_argument("--beam", type=int, default=5)
    command = add("decode", decode.measure, "translation from lines to lines")
    command.add_argument("--run", type=Path, required=True, help="folder of a run with averaged weights")
    command.add_argument("--text", type=Path, help="lines to translate; default: the test set of the corpus")
    command.add_argument("--precisions", type=_some_of((*PRECISIONS, "int8")), default=(*PRECISIONS, "int8"))
    command.add_argument("--batches", type=_counts, default=(1, 32, 256))
    command.add_argument("--beam", type=int, default=4)
    command.add_argument("--rounds", type=_count, default=3)
    command.add_argument("--sentences", type=int, default=300)
    return parser


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number


def _counts(text: str) -> tuple[int, ...]:
    return tuple(map(_count, text.split(",")))


def _some_of(choices: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma-separated lists of these choices."""
    known = tuple(choices)

    def parse(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        if wrong := [each for each in chosen if each not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not one of {', '.join(known)}")
        return chosen

    return parse


if __name__ == "__main__":
    sys.exit(main())
