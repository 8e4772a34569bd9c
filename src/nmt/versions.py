"""Whether an extension was made for this version. This module is imported only if there are extensions."""

from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from nmt import DISTRIBUTION, __version__
from nmt.errors import ConfigError


def check_requirements(requirements: Iterable[str]) -> None:
    """Refuse an extension whose requirements exclude this version."""
    for needed in map(Requirement, requirements):
        ours = canonicalize_name(needed.name) == DISTRIBUTION
        if ours and not needed.specifier.contains(__version__, prereleases=True):
            raise ConfigError(f"it needs {needed}, and this is version {__version__}")
