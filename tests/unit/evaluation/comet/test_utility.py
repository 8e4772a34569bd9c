"""COMET as a utility: its model is loaded for the searches that use it, and once for each engine."""

from dataclasses import replace
from typing import Any

import torch

from nmt.config.compose import compose
from nmt.config.decoding import DecodingConfig

DEVICE = torch.device("meta")
"""Not that of the machine."""
IDS = ("input_ids", "attention_mask")


def with_settings(config: DecodingConfig, **settings: Any) -> DecodingConfig:
    return replace(config, **settings)


def test_a_strangers_model_does_not_name_the_model_of_comet() -> None:
    config = with_settings(compose(["decoding.beam=7"]).decoding, utility="comet", comet="/a/folder")
    assert config.naming_no_file == DecodingConfig(beam=7)
    assert with_settings(config, utility="chrf").naming_no_file.beam == 7
