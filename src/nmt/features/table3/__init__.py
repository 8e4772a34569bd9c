"""The rows of the paper's Table 3, trained, scored and compared with the paper."""

from nmt.feature import Command, Feature

FEATURE = Feature(
    summary="the paper's Table 3: all rows trained and scored, at three scales",
    commands={
        "table3": Command(
            "nmt.table3.command",
            "train and score the rows of the paper's Table 3",
            ("table3", "training", "paths", "runtime"),
            composes=True,
        ),
    },
)
