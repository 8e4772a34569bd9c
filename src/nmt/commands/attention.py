"""`nmt attention`: draw the attention weights of a sentence and its translation."""

from itertools import islice
from pathlib import Path

import vl_convert

from nmt.compute.machine import prepare_machine
from nmt.config.saved import from_yaml
from nmt.config.schema import Config
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.model.build import architecture_of
from nmt.report.attention import compute_attention, heatmaps
from nmt.runs.checkpoints import load, resolve
from nmt.storage.files import replacing
from nmt.text.streams import STANDARD, read_input

SCALE = 2.0
"""Pixels of the image per CSS pixel."""


def run(config: Config) -> None:
    """Translate the first line of the input and draw every head of the attention that the settings name."""
    checkpoint = load(resolve(config.run_folder, config.checkpoint))
    settings, machine = from_yaml(checkpoint.config_text), prepare_machine(config.runtime)
    stacks = {stack.part: stack.layers for stack in architecture_of(settings.model).stacks(settings.model)}
    layers = stacks.get(config.attention.part, stacks["decoder"])
    if config.attention.layer > layers:
        raise UserError(f"attention.layer={config.attention.layer}, but the model has {layers} layers")
    source = _first_line(config.input)
    model, tokenizer = load_model(checkpoint, settings.model, machine.device)
    translation = next(TorchEngine([model], tokenizer, config.decoding, *machine).translate([source], window=1)).text
    weights = compute_attention(model, tokenizer, source, translation)
    image = vl_convert.vegalite_to_png(heatmaps(weights, config.attention.part, config.attention.layer), scale=SCALE)
    path = config.run_folder / "attention.png" if config.output == STANDARD else Path(config.output)
    with replacing(path) as partial:
        partial.write_bytes(image)
    print(f"{source}\n{translation}\nattention: {path}")


def _first_line(name: str) -> str:
    line = next(islice(read_input(name), 1), "").strip()
    if not line:
        raise UserError("the first line of the input is empty: write a sentence there")
    return line
