"""The test sets that sacreBLEU knows, by name."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="test sets of sacreBLEU by name, such as data.test=[sacrebleu:wmt14/full]",
    test_sets={"sacrebleu": "nmt.data.sources.sacrebleu_sets:SOURCE"},
)
