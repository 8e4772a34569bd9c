"""Whether a search is one among well-formed trees; only then is the code imported that restricts it."""

from typing import cast

from nmt.decoding.control import Control, SearchSetup
from nmt.features.trees.settings import TreeDecoding


def well_formed(setup: SearchSetup) -> Control | None:
    """Return the control; None if the settings leave it off."""
    if not cast(TreeDecoding, setup.config).well_formed:
        return None
    from nmt.features.trees.well_formed import WellFormed  # noqa: PLC0415 - only trees need the library

    return WellFormed(setup)
