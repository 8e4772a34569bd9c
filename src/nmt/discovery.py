"""The features that there are: each folder of `nmt/features/`."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import nmt.features
from nmt.feature import Feature


@cache
def features() -> Mapping[str, Feature]:
    """Return the features by name."""
    names = sorted(each.name for each in iter_modules(nmt.features.__path__) if each.ispkg)
    return {name: import_module(f"nmt.features.{name}").FEATURE for name in names}
