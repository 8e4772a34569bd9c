"""Models of Hugging Face and exports of this project as runs."""

from nmt.feature import Command, Feature, Group

FEATURE = Feature(
    summary="runs made of Hugging Face's Marian models (opus-mt) and of exports",
    commands={
        "import": Command(
            "nmt.features.imports.command",
            "make a run of a model in Hugging Face's Marian format, or of an export",
            ("source", "importing", "name", "paths"),
            takes_model="source",
            defaults=("name='${folder_name:${source}}'",),
        ),
    },
    settings={
        "importing": Group("nmt.features.imports.settings:ImportingConfig"),
        "": Group("nmt.features.imports.settings:ImportedFolder"),
    },
)
