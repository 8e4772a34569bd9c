"""Make the runs from which forecasts learn, and test the forecasts on them.

    .venv/bin/python scripts/dev/learning_curves make multi30k:data/raw/multi30k tatoeba:data/raw/tatoeba
    .venv/bin/python scripts/dev/learning_curves collect
    .venv/bin/python scripts/dev/learning_curves coverage
    .venv/bin/python scripts/dev/learning_curves chart docs/text_and_computation.svg

Each text is a folder with training and development text in files such as train.en, val.de or valid.de.xz. What is done
is not repeated, so the same command continues after an interruption. `collect` writes the losses and scores, and no
text, into the package. `coverage` forecasts each run by what the others teach, and counts the outcomes in the bands.
`chart` prints and draws the BLEU of all runs that the package knows, by their text and their operations.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package
from learning_curves.chart import draw
from learning_curves.collect import collect
from learning_curves.coverage import left_out, print_coverage
from learning_curves.make import OUTPUTS, make
from nmt.features.forecast.earlier_runs import earlier_runs
from nmt.features.forecast.extrapolate import FEATURES
from shared.command_line import run_tool, tool_parser
from shared.parallel_text import named_folder


def main() -> None:
    """Do what the command line says."""
    parser = tool_parser(__file__, __doc__)
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make", help="make the runs, and keep their curves")
    making.add_argument("texts", nargs="+", metavar="NAME:FOLDER", type=named_folder)
    making.add_argument("--runs", nargs="+", default=[], metavar="RUN", help="only these runs")
    making.set_defaults(do=lambda options: make(dict(options.texts), options.runs))
    collecting = commands.add_parser("collect", help="write the curves that were made into the package")
    collecting.set_defaults(do=lambda _: collect(OUTPUTS))
    covering = commands.add_parser("coverage", help="count the outcomes in the bands")
    covering.add_argument("--without", choices=FEATURES, default="", help="leave out a feature, to show its worth")
    covering.set_defaults(do=lambda options: print_coverage(list(left_out(earlier_runs(), options.without))))
    drawing = commands.add_parser("chart", help="print and draw what text and computation have given")
    drawing.add_argument("file", type=Path, help="file of the drawing, an SVG")
    drawing.set_defaults(do=lambda options: draw(options.file))
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    run_tool(main, __file__)
