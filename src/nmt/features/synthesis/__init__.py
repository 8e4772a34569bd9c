"""Files of any size translated into corpora, for back-translation and distillation."""

from nmt.feature import COMMON, Command, Feature

FEATURE = Feature(
    summary="files of any size translated into corpora, for back-translation and distillation, also on a cluster",
    commands={
        "synthesize": Command(
            "nmt.synthesis.command",
            "translate a file of any size into a corpus, which later runs train on",
            ("checkpoint", "engine", "input", "synthesize", "decoding", "data.engine", *COMMON),
            distributed=True,
            corpus=False,
        ),
    },
)
