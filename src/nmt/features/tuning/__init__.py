"""The settings that train fastest on a machine, found by measuring, and taken by later runs."""

from nmt.feature import COMMON, Command, Feature, Group

FEATURE = Feature(
    summary="the settings that train fastest on this machine, by measurement",
    commands={
        "tune": Command(
            "nmt.features.tuning.command",
            "measure the settings that make training fastest on this machine",
            ("tune", "model", "training.batch_tokens", "training.device_tokens", *COMMON),
        ),
    },
    settings={
        "tune": Group("nmt.features.tuning.settings:TuneConfig"),
        "runtime": Group("nmt.features.tuning.settings:TunedRuntime"),
    },
    prepares_training="nmt.features.tuning.apply:take_tuned",
)
