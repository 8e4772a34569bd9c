"""The settings of a mixture of corpora: their effect, and the shares of the corpora."""

from collections.abc import Container, Mapping

from nmt.config.data import OF_THE_MIXTURE, DataConfig, corpora_of
from nmt.errors import ConfigError


def check_mixture(data: DataConfig, given: Container[str]) -> None:
    """Refuse settings of a mixture that have no effect; `given` has the names of those that the user gives."""
    if data.mixture:
        return
    for name, usual in {"weight": 1.0, **OF_THE_MIXTURE}.items():
        value = getattr(data, name)
        if f"data.{name}" in given and value != usual:
            raise ConfigError(
                f"data.{name}={value:g} has no effect without another corpus: name one, such as "
                "data.mixture.more.train=[more.en,more.de]"
            )


def shares_of(data: DataConfig, sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the shares of the corpora in the training tokens, given their sizes; they add up to 1."""
    corpora = corpora_of(data)
    exponent = 1 / data.temperature if data.temperature else 0.0
    weights = {name: corpora[name].settings.weight * size**exponent for name, size in sizes.items()}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}
