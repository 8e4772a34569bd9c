"""Models of Hugging Face as runs."""

from nmt.feature import Command, Feature

FEATURE = Feature(
    summary="runs made of Hugging Face's Marian models (opus-mt)",
    commands={
        "import": Command(
            "nmt.imports.command",
            "make a run of a Marian model of Hugging Face (opus-mt)",
            ("source", "name", "paths"),
            takes_model="source",
            defaults=("name='${folder_name:${source}}'",),
        ),
    },
)
