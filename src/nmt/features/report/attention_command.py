"""`nmt attention`: draw the attention weights of a sentence and its translation."""

from itertools import islice

import vl_convert

from nmt.compute.machine import prepare_machine
from nmt.config.schema import Config
from nmt.decoding.load_engine import load_engine
from nmt.errors import UserError
from nmt.features.report.attention import heatmaps
from nmt.features.report.settings import AttentionConfig
from nmt.text.streams import STANDARD, open_output, read_input

SCALE = 2.0
"""Pixels of the image per CSS pixel."""


def run(config: Config) -> None:
    """Translate the first line of the input and draw every head of the attention that the settings name."""
    model = load_engine(config, prepare_machine(config.runtime))
    source = _first_line(config.input)
    translation = model.translate([source])[0].text
    weights = model.attention(source, translation)
    part, layer = config.of(AttentionConfig).part, config.of(AttentionConfig).layer
    layers = len(weights.of_kind(part)[0])
    if layer > layers:
        raise UserError(f"attention.layer={layer}, but the model has {layers} layers")
    image = vl_convert.vegalite_to_png(heatmaps(weights, part, layer), scale=SCALE)
    output = str(config.run_folder / "attention.png") if config.output == STANDARD else config.output
    with open_output(output) as file:
        file.write(image)
    print(f"{source}\n{translation}\nattention: {output}")


def _first_line(name: str) -> str:
    line = next(islice(read_input(name), 1), "").strip()
    if not line:
        raise UserError("the first line of the input is empty: write a sentence there")
    return line
