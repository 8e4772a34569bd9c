"""Training and decoding speed, ours and that of peers, in turn in one run, on CPUs.

    .venv/bin/python scripts/bench setup                  # environments of the peers, in .bench/
    .venv/bin/python scripts/bench train                  # training speed: tokens/s, share of the peak, memory
    .venv/bin/python scripts/bench train --shapes small,base --allocator --output speed.json
    .venv/bin/python scripts/bench curves --updates 600   # development loss after the same tokens
    .venv/bin/python scripts/bench minutes --minutes 10 --engines ours,huggingface
    .venv/bin/python scripts/bench breakdown              # parts of our step, and the data pipeline alone
    .venv/bin/python scripts/bench scaling                # processes against threads
    .venv/bin/python scripts/bench decode --checkpoint outputs/multi30k/checkpoints/averaged

`setup` builds an environment for each peer from PyPI by its Python's pip, with pip's own settings (an index for CPU
builds of torch, say, by PIP_EXTRA_INDEX_URL). A peer that is missing or fails is named in the table with the reason.

The text is what the settings after the options name, prepared as `make data` would; without any, the demo corpus:

    .venv/bin/python scripts/bench train experiment=multi30k data.train=[train.en,train.de] \
        data.valid=[valid.en,valid.de] data.test=[test.en,test.de]

All engines get the same word pieces in one vocabulary and models of the same shape: tied embeddings, dropout 0.1,
label smoothing 0.1, Adam, post-norm (eole knows pre-norm alone), 4,096 target tokens a batch. Each stretch is a
process of its own, so that engines take turns, round by round. Tokens are source and target tokens with end marks,
never padding, counted in the batches that an engine trains on; Marian tells its labels in its log. The share of the
peak counts the operations of the model alone against a product of large matrices, measured in the same run. Settings
for this project alone, such as `--ours runtime.compile=true`, change its rows only. `--allocator` measures all once
more with glibc told to keep large buffers.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import breakdown
import curves
import decoding
import minutes
import speed
from corpus import SHAPES
from engines import ENGINES, PEERS, Bench, setup

from nmt.errors import UserError
from nmt.storage.files import write_json

PRECISIONS = ("fp32", "bf16")


def main() -> int:
    """Do what the command line asks for."""
    options = _parser().parse_args()
    if options.command == "setup":
        return setup(options.engines, options.peers)
    try:
        found = options.measure(options, Bench(options.peers.absolute(), options.threads))
    except UserError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if options.output:
        write_json(options.output, {"settings": _plain(options), **found})
    return 0


def _plain(options: argparse.Namespace) -> dict[str, object]:
    """The options as they go into the figures' file."""
    return {
        key: value if isinstance(value, int | float | str | None) else str(value)
        for key, value in vars(options).items()
        if key not in ("measure", "peers", "output")
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--threads", type=int, default=2)
    common.add_argument("--peers", type=Path, default=PEERS, help="folder of the peers' environments")
    common.add_argument("--output", type=Path, help="also write the figures here, as JSON")
    text = argparse.ArgumentParser(add_help=False)
    text.add_argument("overrides", nargs="*", default=["experiment=demo"], help="settings, such as experiment=multi30k")
    text.add_argument("--ours", action="append", default=[], metavar="KEY=VALUE", help="a setting for nmt alone")
    commands = parser.add_subparsers(dest="command", required=True)

    peers = [name for name, engine in ENGINES.items() if engine.packages]
    command = commands.add_parser("setup", parents=[common], help="make the peers' environments")
    command.add_argument("engines", nargs="*", type=_one_of(peers), default=peers)

    def measuring(name: str, measure: Callable[..., object], about: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, parents=[common, text], help=about)
        command.set_defaults(measure=measure)
        return command

    _add_training(measuring)
    _add_decoding(measuring)
    return parser


def _add_training(measuring: Callable[..., argparse.ArgumentParser]) -> None:
    command = measuring("train", speed.measure, "training speed")
    command.add_argument("--engines", type=_some_of(speed.TRAINERS), default=speed.TRAINERS)
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default=PRECISIONS)
    command.add_argument("--shapes", type=_some_of(SHAPES), default=("small",))
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--allocator", action="store_true", help="also with glibc told to keep large buffers")
    _add_stretch(command, seconds=30.0)
    command = measuring("curves", curves.measure, "development loss after the same tokens")
    command.add_argument("--engines", type=_some_of(curves.CURVES), default=curves.CURVES)
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default=PRECISIONS)
    command.add_argument("--updates", type=int, default=1000)
    command.add_argument("--every", type=int, default=100, help="updates from one look to the next")
    command.add_argument("--rate", type=float, default=7e-4, help="highest learning rate")
    command.add_argument("--warmup-steps", type=int, default=400)
    command.add_argument("--schedule", choices=("inverse_sqrt", "cosine"), default="inverse_sqrt")
    command.add_argument("--chart", type=Path, help="also draw the curves here, as SVG")
    _add_shape(command)
    command = measuring("minutes", minutes.measure, "sacreBLEU after some minutes of training")
    command.add_argument("--engines", type=_some_of(curves.CURVES), default=curves.CURVES)
    command.add_argument("--minutes", type=float, default=10.0)
    command.add_argument("--precision", choices=PRECISIONS, help="without it, whichever is faster")
    command.add_argument("--rate", type=float, default=7e-4, help="highest learning rate of the peers")
    command.add_argument("--dropout", type=float, default=0.1, help="of the peers")
    _add_stretch(command, seconds=15.0, batch_tokens=1024)
    _add_shape(command, batch_tokens=None)
    command = measuring("breakdown", breakdown.measure, "parts of our step, and the data pipeline alone")
    command.add_argument("--precisions", type=_some_of(PRECISIONS), default=PRECISIONS)
    _add_stretch(command, seconds=20.0)
    _add_shape(command, batch_tokens=None)
    command = measuring("scaling", breakdown.scaling, "processes against threads")
    command.add_argument("--precision", choices=PRECISIONS, default="bf16")
    command.add_argument("--updates", type=int, default=50)
    _add_shape(command)


def _add_decoding(measuring: Callable[..., argparse.ArgumentParser]) -> None:
    command = measuring("decode", decoding.measure, "decoding speed")
    command.add_argument("--checkpoint", type=Path, action="append", required=True, help="folder; may be given again")
    command.add_argument("--engines", type=_some_of(decoding.TRANSLATORS), default=decoding.TRANSLATORS)
    command.add_argument("--batch", type=lambda text: tuple(map(int, text.split(","))), default=(1, 32, 256))
    command.add_argument("--beam", type=int, default=5)
    command.add_argument("--alpha", type=float, default=0.6, help="exponent of the length penalty")
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--sentences", type=int, help="only so many of the test set")


def _add_stretch(command: argparse.ArgumentParser, seconds: float, batch_tokens: int = 4096) -> None:
    command.add_argument("--seconds", type=float, default=seconds, help="of a timed stretch")
    command.add_argument("--warmup", type=float, default=5.0, help="seconds before it")
    command.add_argument("--batch-tokens", type=int, default=batch_tokens)


def _add_shape(command: argparse.ArgumentParser, batch_tokens: int | None = 4096) -> None:
    command.add_argument("--shape", choices=SHAPES, default="small")
    if batch_tokens:
        command.add_argument("--batch-tokens", type=int, default=batch_tokens)


def _one_of(known: Iterable[str]) -> Callable[[str], str]:
    names = tuple(known)

    def check(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(names)}")
        return text

    return check


def _some_of(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """A list with commas of what is known."""
    check = _one_of(known)
    return lambda text: tuple(check(word) for word in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
