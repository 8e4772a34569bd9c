"""The ratio of the words of translations and references."""

from nmt.evaluation.metric import Metric, Score, Translated


def length_ratio(text: Translated) -> Score:
    """Return the words of the translations as a percentage of those of the first reference."""
    ours, theirs = (sum(len(line.split()) for line in lines) for lines in (text.hypotheses, text.references[0]))
    return Score(100 * ours / max(1, theirs), "length_ratio|words")


LENGTH_RATIO = Metric("length ratio", length_ratio)
