"""Settings of fine-tuning that contradict others are refused, and tell the core what it needs to know."""

import pytest

from nmt.config.compose import compose
from nmt.data.make_tokenizer import earlier_tokenizer, tokenizer_settings
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


@pytest.mark.parametrize(
    ("overrides", "recorded", "is_trained"),
    [
        ([], None, True),
        ([OLD], "old", False),
        ([OLD, "training.init_vocabulary=extend"], "extend", True),
        ([OLD, "training.init_vocabulary=new"], None, True),
    ],
)
def test_manifest_records_how_the_vocabulary_is_used(
    overrides: list[str], recorded: str | None, is_trained: bool
) -> None:
    found = tokenizer_settings(compose(overrides))
    assert found["vocabulary"] == recorded
    assert (found["settings"] is not None) == is_trained


def test_missing_model_is_an_error_only_when_it_is_needed() -> None:
    config = compose([OLD, "paths.outputs=/nowhere"])
    earlier = earlier_tokenizer(config)
    assert earlier is not None
    with pytest.raises(UserError, match=r"training\.init_from=old is neither a run in /nowhere nor a checkpoint"):
        earlier.load()
    with pytest.raises(UserError, match=r"training\.init_from=old is neither a run in /nowhere nor a checkpoint"):
        load_origin(config)
    assert load_origin(compose([])) is None
