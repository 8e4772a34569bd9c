"""Training and decoding speed, ours and that of peers, in turn in one run.

.venv/bin/python scripts/bench setup                      # environments of the peers, in .bench/
.venv/bin/python scripts/bench train                      # training speed
"""

import argparse
import sys
from pathlib import Path

import speed
from engines import ENGINES, PEERS, Bench, setup

from nmt.errors import UserError
from nmt.files import write_json


def main() -> int:
    """Do what the command line asks for."""
    options = _parser().parse_args()
    bench = Bench(options.peers, options.threads)
    if options.command == "setup":
        return setup(options.engines or ENGINES, options.peers)
    try:
        found = options.measure(options, bench)
    except UserError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if options.output:
        settings = {key: value for key, value in vars(options).items() if key not in ("measure", "peers", "output")}
        write_json(options.output, {"settings": settings, **found})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--threads", type=int, default=2)
    common.add_argument("--peers", type=Path, default=PEERS, help="folder of the peers' environments")
    common.add_argument("--output", type=Path, help="also write the figures here, as JSON")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("setup", parents=[common], help="make the peers' environments")
    command.add_argument("engines", nargs="*", choices=[[], *ENGINES])
    command = commands.add_parser("train", parents=[common], help="training speed")
    command.set_defaults(measure=speed.measure)
    command.add_argument("overrides", nargs="*", default=["experiment=demo"])
    command.add_argument("--engines", type=_words, default=speed.TRAINERS)
    command.add_argument("--precisions", type=_words, default=("fp32", "bf16"))
    command.add_argument("--shapes", type=_words, default=("small",))
    command.add_argument("--batch-tokens", type=int, default=4096)
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--seconds", type=float, default=30.0)
    command.add_argument("--warmup", type=float, default=5.0)
    command.add_argument("--allocator", action="store_true")
    command.add_argument("--ours", action="append", default=[], metavar="KEY=VALUE")
    return parser


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


if __name__ == "__main__":
    sys.exit(main())
