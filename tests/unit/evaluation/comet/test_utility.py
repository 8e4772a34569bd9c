"""COMET's model is named by the user, not by a stranger's model."""

from dataclasses import replace

from nmt.config.compose import compose
from nmt.config.decoding import DecodingConfig


def test_a_strangers_model_does_not_name_the_model_of_comet() -> None:
    config = replace(compose(["decoding.beam=7"]).decoding, utility="comet", comet="/a/folder")
    assert config.naming_no_file == DecodingConfig(beam=7)
    assert replace(config, utility="chrf").naming_no_file.beam == 7
