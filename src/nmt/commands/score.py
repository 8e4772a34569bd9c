"""`nmt score`: score given translations."""

from collections.abc import Iterator

from tqdm import tqdm

from nmt.compute.machine import prepare_machine
from nmt.config.tree import Config
from nmt.decoding.engine import WINDOW_CHARACTERS, WINDOW_LINES
from nmt.decoding.load import load_engine
from nmt.errors import UserError
from nmt.text.lines import STANDARD, blocks, check_used_once, open_output, read_input


def run(config: Config) -> None:
    """Read `source<TAB>translation` lines; write `log-probability<TAB>tokens<TAB>source<TAB>translation`."""
    check_used_once(config.input, [config.output])
    pairs = _pairs(config.input, read_input(config.input))
    engine = load_engine(config, prepare_machine(config.runtime)).engine
    with open_output(config.output) as output, tqdm(unit=" lines", leave=False, disable=None) as bar:
        for block in blocks(pairs, WINDOW_LINES, lambda pair: sum(map(len, pair)), WINDOW_CHARACTERS):
            sources, targets = zip(*block, strict=True)
            for (source, target), likelihood in zip(block, engine.score(sources, targets, bar.update), strict=True):
                row = f"{likelihood.log_probability:.6f}\t{likelihood.tokens}\t{source}\t{target}\n"
                output.write(row.encode())
            output.flush()


def _pairs(name: str, lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    input_name = "standard input" if name == STANDARD else name
    for number, line in enumerate(lines, 1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise UserError(
                f"{input_name}, line {number}: {len(columns)} column(s), but two are needed, "
                "source and translation with a tab between"
            )
        yield columns[0], columns[1]
