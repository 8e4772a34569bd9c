"""A filter of the training text that identifies the languages of both sides."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="a filter that drops training pairs with a side that is in another language",
    packages={"py3langid": "py3langid>=0.4"},
    settings={"data": Group("nmt.features.language_filter.settings:LanguageData")},
    filters=("nmt.features.language_filter.language:FILTER",),
)
