"""What this machine has, which features are off, and what its GPUs compute and how fast."""

from nmt.feature import Command, Feature, Group

FEATURE = Feature(
    summary="what this machine has, which features are off and why, and what its GPUs compute and how fast",
    commands={
        "doctor": Command(
            "nmt.features.doctor.command",
            "say what this machine has, and which features are off and why; doctor.gpu=true measures its GPUs",
            ("doctor", "output", "training.batch_tokens", "training.device_tokens", "paths", "runtime"),
        ),
    },
    settings={"doctor": Group("nmt.features.doctor.settings:DoctorConfig")},
)
