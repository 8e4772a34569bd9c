"""`nmt features`: list the features, and what each adds."""

from dataclasses import fields

from nmt.config.schema.config import Config
from nmt.discovery import features, imported
from nmt.errors import UserError
from nmt.feature import Feature


def run(overrides: list[str]) -> None:
    """Print each feature with its commands, settings and choices."""
    if overrides:
        raise UserError(f"{overrides[0]} has no effect: `nmt features` takes no settings")
    print("\n\n".join(_described(name, feature) for name, feature in features().items()))


def _described(name: str, feature: Feature) -> str:
    lines = [f"{name}: {feature.summary}"]
    if feature.commands:
        lines.append(f"  commands: {', '.join(feature.commands)}")
    if feature.settings:
        lines.append(f"  settings: {', '.join(settings_of(feature))}")
    endings = [ending for each in feature.file_formats for ending in each.endings]
    if endings:
        lines.append(f"  files: {', '.join(endings)}")
    for setting, choices in feature.all_choices.items():
        lines.append(f"  {setting}: {', '.join(choices)}")
    if feature.page:
        lines.append(f"  documented in {feature.page}")
    return "\n".join(lines)


def settings_of(feature: Feature) -> list[str]:
    """Return the settings that a feature adds; `serve.*` is a group of its own."""
    core = {"", *(each.name for each in fields(Config))}
    names = []
    for name, group in feature.settings.items():
        added = [each.name for each in fields(imported(group.code))] if name in core else ["*"]
        names += [f"{name}.{each}".lstrip(".") for each in added]
    return names
