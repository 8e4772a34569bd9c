"""Compare the training and decoding speed of nmt and its peers, taking turns in one run.

    .venv/bin/python scripts/bench machine                # what to expect on this machine; the default of make bench
    .venv/bin/python scripts/bench setup                  # create the peers' environments in .bench/
    .venv/bin/python scripts/bench train                  # training: tokens/s, fraction of the peak, memory
    .venv/bin/python scripts/bench train --shapes small,base --allocator --output speed.json
    .venv/bin/python scripts/bench train --device cuda --shapes base,big --batch-tokens 25000 --engines ours,huggingface
    .venv/bin/python scripts/bench curves --updates 600   # development loss after the same number of tokens
    .venv/bin/python scripts/bench minutes --minutes 10 --engines ours,huggingface
    .venv/bin/python scripts/bench breakdown              # time of nmt's training step, and of the data pipeline
    .venv/bin/python scripts/bench scaling                # processes compared with threads
    .venv/bin/python scripts/bench decode --checkpoint outputs/demo/checkpoints/averaged

`setup` creates a virtual environment per peer and installs the peer with pip, which reads its usual settings (for
example PIP_EXTRA_INDEX_URL for an index of CPU builds of torch). The tables name each peer that is missing or fails,
with the reason.

The settings after the options choose the corpus, which is prepared as by `make data`; the default is the demo corpus:

    .venv/bin/python scripts/bench train experiment=multi30k data.train=[train.en,train.de] \
        data.valid=[valid.en,valid.de] data.test=[test.en,test.de]

All engines use the same word pieces, one shared vocabulary and models of the same shape: tied embeddings, dropout 0.1,
label smoothing 0.1, Adam, post-norm (eole only supports pre-norm), 4,096 target tokens per batch. Each measurement runs
in a process of its own, and the engines take turns in each round. Tokens are source and target tokens including end
marks but not padding, counted in the batches that an engine trains on. The fraction
of the peak divides the FLOPs of the model by those of a large matrix product, measured in the same run. `--ours` gives
settings to nmt only, for example `--ours runtime.compile=true`. `--allocator` repeats all measurements with glibc tuned
to keep large buffers. `--cpu avx2` limits PyTorch and CTranslate2 to the instructions of most laptops; the figures
are those of this machine with fewer instructions. Each table names the kind of CPU.

Each result is printed as it comes, and added to outputs/bench.jsonl.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import breakdown
import curves
import decoding
import machine
import minutes
import speed
from corpus import SHAPES
from engines import CPUS, ENGINES, PEERS, ROOT, Bench, setup

from nmt.compute.cores import computing_threads
from nmt.errors import UserError
from nmt.storage.files import write_json

PRECISIONS = ("fp32", "bf16")


def main() -> int:
    """Run the command; return the exit code."""
    options = _parser().parse_args()
    if options.command == "setup":
        return setup(options.engines, options.peers)
    options.overrides = with_corpus(options.overrides)
    try:
        bench = Bench(options.peers.absolute(), options.threads, options.record, options.cpu)
        results = options.measure(options, bench)
    except UserError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"bench: interrupted; {options.record} has what was measured", file=sys.stderr)
        return 130
    if options.output:
        write_json(options.output, {"settings": _json_options(options), **results})
    return 0


def with_corpus(overrides: list[str]) -> list[str]:
    """Return the settings with the demo's corpus, unless they name another one."""
    named = any(re.match(r"(experiment|data|data\.source|data\.train)=", each) for each in overrides)
    return overrides if named else ["experiment=demo", *overrides]


def _json_options(options: argparse.Namespace) -> dict[str, object]:
    """Return the options that the output file records."""
    return {
        key: value if isinstance(value, int | float | str | None) else str(value)
        for key, value in vars(options).items()
        if key not in ("measure", "peers", "output", "record")
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--threads", type=int, default=computing_threads(), help="default: %(default)s")
    common.add_argument(
        "--cpu", choices=CPUS, default="native", help="avx2: use the instructions of a CPU without more"
    )
    common.add_argument("--peers", type=Path, default=PEERS, help="folder of the peers' environments")
    common.add_argument(
        "--record", type=Path, default=ROOT / "outputs" / "bench.jsonl", help="file of all results, a line each"
    )
    common.add_argument("--output", type=Path, help="also write the figures to this JSON file")
    corpus = argparse.ArgumentParser(add_help=False)
    corpus.add_argument("overrides", nargs="*", default=[], help="settings, such as experiment=multi30k")
    corpus.add_argument("--ours", action="append", default=[], metavar="KEY=VALUE", help="a setting for nmt only")
    commands = parser.add_subparsers(dest="command", required=True)

    peers = [name for name, engine in ENGINES.items() if engine.packages]
    command = commands.add_parser("setup", parents=[common], help="create the peers' environments")
    command.add_argument("engines", nargs="*", type=_one_of(peers), default=peers)

    def add_command(name: str, measure: Callable[..., object], description: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, parents=[common, corpus], help=description)
        command.set_defaults(measure=measure)
        return command

    _add_training_commands(add_command)
    _add_decoding_command(add_command)
    return parser


def _add_training_commands(add_command: Callable[..., argparse.ArgumentParser]) -> None:
    command = add_command("machine", machine.measure, "what to expect on this machine")
    command.add_argument("--seconds", type=float, default=20.0, help="length of the measurement of training")
    command = add_command("train", speed.measure, "training speed")
    command.add_argument("--engines", type=_some_of(speed.TRAINERS), default=speed.TRAINERS)
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default=PRECISIONS)
    command.add_argument("--shapes", type=_some_of(SHAPES), default=("small",))
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    command.add_argument("--allocator", action="store_true", help="also measure with glibc tuned to keep large buffers")
    _add_timing(command, seconds=30.0)
    command = add_command("curves", curves.measure, "development loss after the same number of tokens")
    command.add_argument("--engines", type=_some_of(curves.CURVES), default=curves.CURVES)
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default=PRECISIONS)
    command.add_argument("--updates", type=int, default=1000)
    command.add_argument("--every", type=int, default=100, help="updates between evaluations")
    command.add_argument("--rate", type=float, default=7e-4, help="peak learning rate")
    command.add_argument("--warmup-steps", type=int, default=400)
    command.add_argument("--schedule", choices=("inverse_sqrt", "cosine"), default="inverse_sqrt")
    _add_shape(command)
    command = add_command("minutes", minutes.measure, "sacreBLEU after some minutes of training")
    command.add_argument("--engines", type=_some_of(curves.CURVES), default=curves.CURVES)
    command.add_argument("--minutes", type=float, default=10.0)
    command.add_argument("--precision", choices=PRECISIONS, help="default: the faster one of each engine")
    command.add_argument("--rate", type=float, default=7e-4, help="peak learning rate of the peers")
    command.add_argument("--dropout", type=float, default=0.1, help="dropout of the peers")
    command.add_argument("--beam", type=int, default=5)
    command.add_argument(
        "--cpu-time", action="store_true", help="count minutes of CPU time: for machines that other programs use"
    )
    _add_timing(command, seconds=15.0, batch_tokens=1024)
    _add_shape(command, batch_tokens=None)
    command = add_command("breakdown", breakdown.measure, "time of nmt's training step, and of the data pipeline")
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default=PRECISIONS)
    _add_timing(command, seconds=20.0)
    _add_shape(command, batch_tokens=None)
    command = add_command("scaling", breakdown.scaling, "processes compared with threads")
    command.add_argument("--precision", choices=PRECISIONS, default="bf16")
    command.add_argument("--updates", type=int, default=50)
    _add_shape(command)


def _add_decoding_command(add_command: Callable[..., argparse.ArgumentParser]) -> None:
    command = add_command("decode", decoding.measure, "decoding speed")
    command.add_argument("--checkpoint", type=Path, action="append", required=True, help="folder; may be repeated")
    command.add_argument("--engines", type=_some_of(decoding.TRANSLATORS), default=decoding.TRANSLATORS)
    command.add_argument("--batch", type=lambda text: tuple(map(int, text.split(","))), default=(1, 32, 256))
    command.add_argument("--beam", type=int, default=5)
    command.add_argument("--alpha", type=float, default=0.6, help="exponent of the length penalty")
    command.add_argument("--controls", type=_some_of(decoding.CONTROLS), default=("plain",))
    command.add_argument("--precisions", type=_some_of((*PRECISIONS, "int8")), default=(*PRECISIONS, "int8"))
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--sentences", type=int, help="largest number of test sentences")


def _add_timing(command: argparse.ArgumentParser, seconds: float, batch_tokens: int = 4096) -> None:
    command.add_argument("--seconds", type=float, default=seconds, help="length of the measurement")
    command.add_argument("--warmup", type=float, default=5.0, help="seconds of training before the measurement")
    command.add_argument("--batch-tokens", type=int, default=batch_tokens)


def _add_shape(command: argparse.ArgumentParser, batch_tokens: int | None = 4096) -> None:
    command.add_argument("--shape", choices=SHAPES, default="small")
    if batch_tokens:
        command.add_argument("--batch-tokens", type=int, default=batch_tokens)


def _one_of(choices: Iterable[str]) -> Callable[[str], str]:
    names = tuple(choices)

    def check(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(names)}")
        return text

    return check


def _some_of(choices: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma-separated lists of these choices."""
    check = _one_of(choices)
    return lambda text: tuple(check(name) for name in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
