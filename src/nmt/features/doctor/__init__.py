"""What this machine has, and which features are off."""

from nmt.feature import Command, Feature

FEATURE = Feature(
    summary="what this machine has, and which features are off and why",
    commands={
        "doctor": Command(
            "nmt.doctor.command",
            "say what this machine has, and which features are off and why",
            ("output", "paths", "runtime"),
        ),
    },
)
