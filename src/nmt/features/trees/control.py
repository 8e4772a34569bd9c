"""Whether a search is one among well-formed trees; only then is the code imported that restricts it."""

from typing import TYPE_CHECKING

from nmt.config.decoding import DecodingConfig

if TYPE_CHECKING:
    import torch

    from nmt.decoding.search import Control
    from nmt.text.tokenizer import Tokenizer


def well_formed(config: DecodingConfig, tokenizer: "Tokenizer", device: "torch.device") -> "Control | None":
    """Return the control; None if the settings leave it off."""
    if not config.well_formed:
        return None
    from nmt.features.trees.well_formed import WellFormed  # noqa: PLC0415 - only trees need the library

    return WellFormed(tokenizer, device)
