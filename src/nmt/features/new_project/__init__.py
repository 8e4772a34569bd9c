"""A folder for experiments of your own, outside of the package."""

from nmt.feature import Command, Feature, Group

FEATURE = Feature(
    summary="a folder for experiments of your own",
    page="docs/usage.md#your-own-experiments",
    commands={
        "init": Command(
            "nmt.features.new_project.command",
            "write an experiment of your own, a Makefile and a README, ready to run",
            ("init",),
        )
    },
    settings={"init": Group("nmt.features.new_project.settings:InitConfig")},
)
