"""Minimum Bayes risk: of several candidates, the translation that agrees best with all of them."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="minimum Bayes risk: of several candidates the one that agrees best with all of them",
    settings={"decoding": Group("nmt.features.minimum_bayes_risk.settings:RiskDecoding")},
    choices={
        "decoding.strategy": {
            "mbr": Choice("nmt.features.minimum_bayes_risk.control:least_risk", "minimum Bayes risk of candidates")
        },
        "decoding.utility": {
            "chrf": Choice("nmt.features.minimum_bayes_risk.utilities:by_chrf", "chrF"),
            "bleu": Choice("nmt.features.minimum_bayes_risk.utilities:by_bleu", "BLEU"),
        },
    },
    check="nmt.features.minimum_bayes_risk.check:check",
    search_in_words="nmt.features.minimum_bayes_risk.settings:in_words",
    search_settings="nmt.features.minimum_bayes_risk.settings:search_for_candidates",
)
