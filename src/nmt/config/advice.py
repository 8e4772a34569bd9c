"""How much features advise to regularise a run, by its number of passes over the text."""

from typing import TYPE_CHECKING, Any

from nmt.discovery import features, imported

if TYPE_CHECKING:
    from nmt.config.schema.config import Config


def advised_settings() -> tuple[str, ...]:
    """Return the names of the settings for which features advise values."""
    return tuple(name for feature in features().values() for name in feature.advice)


def advised_values(config: "Config", passes: float) -> dict[str, Any]:
    """Return the values that features advise for a number of passes over the training text, by setting."""
    advice = [each for feature in features().values() for each in feature.advice.items()]
    return {name: imported(code)(config, passes) for name, code in advice}
