"""What the extension adds; the code is imported when it is first used."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="an example: numbers in words, the ratio of lengths, and the confidence penalty",
    settings={"training": Group("nmt_numbers.settings:NumbersTraining")},
    uses="nmt_numbers.settings:uses",
    choices={"data.source": {"numbers": Choice("nmt_numbers.source:SOURCE", "numbers as digits and in words")}},
    metrics={"length_ratio": "nmt_numbers.metric:LENGTH_RATIO"},
    term="nmt_numbers.term:confidence_penalty",
)
