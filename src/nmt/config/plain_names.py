"""Names of runs and folders that are made from settings."""

import re
from collections.abc import Mapping
from hashlib import sha256

from nmt.config.checks import MAX_NAME_CHARACTERS
from nmt.config.keys import written

_DIGEST_CHARACTERS = 8


def settings_name(values: Mapping[str, object], limit: int = MAX_NAME_CHARACTERS) -> str:
    """Return settings as a name such as model.dropout_0.1-training.steps_500, sorted by key.

    It needs no quotes on the command line, so it has no signs such as = and commas. A name with other characters, or of
    more than `limit`, ends with a digest instead, so that other settings still have other names.
    """
    text = "-".join(f"{key}_{written(value)}" for key, value in sorted(values.items()))
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", text)
    if plain == text and len(text) <= limit:
        return text
    digest = sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: max(0, limit - len(digest) - 1)]}-{digest}".lstrip("-")
