"""Muon (Jordan et al., 2024): an optimizer that makes the updates of matrices orthogonal."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="Muon, an optimizer that makes the updates of matrices orthogonal",
    settings={"training": Group("nmt.features.muon.settings:MuonTraining")},
    choices={
        "training.optimizer": {
            "muon": Choice("nmt.features.muon.optimizer:muon", "Muon for the matrices of the layers, Adam for the rest")
        }
    },
)
