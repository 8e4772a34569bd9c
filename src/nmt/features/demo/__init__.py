"""The embedded demo language: sentences and trees from a grammar, and the whole chain on them."""

from nmt.feature import COMMON, Command, Feature

FEATURE = Feature(
    summary="text and trees from an embedded grammar, and the whole chain on them",
    commands={
        "demo": Command(
            "nmt.demo.command",
            "run data, train, average, eval and report on text that needs no download",
            ("training", *COMMON),
            defaults=("experiment=demo",),
            trains=True,
            distributed=True,
            corpus=False,  # its commands have needs of their own
            weights="none",
        ),
    },
)
