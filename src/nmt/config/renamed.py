"""Settings of earlier versions: old names, which are still understood for one version, and old meanings."""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from nmt.launched import is_main_process

RENAMED = {
    "device": "describe.device",
    "gpus": "describe.gpus",
    "rows": "table3.rows",
    "scale": "table3.scale",
    "step": "batch.step",
    "format": "translate.format",
    "prefix": "translate.prefix",
}
"""The new name of each setting by its old name."""

_OVERRIDE = re.compile(rf"(\+*)({'|'.join(RENAMED)})(?==)")


def rename_overrides(overrides: Sequence[str]) -> list[str]:
    """Return overrides of the command line under their new names, with a hint on standard error for each old one."""
    return [
        _OVERRIDE.sub(_renamed, override, count=1) if _OVERRIDE.match(override) else override for override in overrides
    ]


def rename_saved(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings of an older version under their new names; a new name that is there already wins."""
    renamed = {key: value for key, value in settings.items() if key not in RENAMED}
    for old in RENAMED.keys() & settings.keys():
        group, _, name = RENAMED[old].partition(".")
        members = renamed.get(group, {})
        if isinstance(members, Mapping):  # if not, the schema will complain about the group
            renamed[group] = {name: settings[old], **members}
    return _with_seed_of_text(renamed)


def _with_seed_of_text(settings: dict[str, Any]) -> dict[str, Any]:
    """Return nested settings with `data.seed`: before there was one, `seed` chose the text of the demo corpus."""
    data = settings.get("data")
    if not isinstance(data, Mapping) or "seed" in data or "seed" not in settings:
        return settings
    mixture = data.get("mixture")
    corpora = [data, *(mixture.values() if isinstance(mixture, Mapping) else ())]
    if any(isinstance(corpus, Mapping) and corpus.get("source") == "demo" for corpus in corpora):
        return {**settings, "data": {**data, "seed": settings["seed"]}}
    return settings


def _renamed(found: re.Match[str]) -> str:
    _hint(found[2])
    return found[1] + RENAMED[found[2]]


@cache
def _hint(old: str) -> None:
    """Name the new setting, once per process, and on the first process only."""
    if is_main_process():
        print(f"nmt: {old}= is now {RENAMED[old]}=; the next version will not accept the old name", file=sys.stderr)
