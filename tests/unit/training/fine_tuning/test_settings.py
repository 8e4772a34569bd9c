"""Settings of fine-tuning that contradict others are refused, and tell the core what it needs to know."""

import pytest

from nmt.config.compose import compose
from nmt.data.make_tokenizer import earlier_tokenizer
from nmt.errors import ConfigError, UserError
from nmt.training.fine_tuning import load_origin

OLD = "training.init_from=old"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["tokenizer.folder=x", OLD], "tokenizer.folder names a tokenizer, but"),
        (["training.init_vocabulary=new"], "training.init_skip and training.init_vocabulary need training.init_from"),
        (["training.init_skip=[x]"], "training.init_skip and training.init_vocabulary need training.init_from"),
        ([OLD, "training.init_vocabulary=other"], "training.init_vocabulary=other is not one of old, new, extend"),
    ],
)
def test_settings_that_do_not_fit_are_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compose(overrides)


def test_missing_model_is_an_error_only_when_it_is_needed() -> None:
    config = compose([OLD, "paths.outputs=/nowhere"])
    earlier = earlier_tokenizer(config)
    assert earlier is not None
    with pytest.raises(UserError, match=r"training\.init_from=old is neither a run in /nowhere nor a checkpoint"):
        earlier.load(config)
    with pytest.raises(UserError, match=r"training\.init_from=old is neither a run in /nowhere nor a checkpoint"):
        load_origin(config)
    assert load_origin(compose([])) is None
