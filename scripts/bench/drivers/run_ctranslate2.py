"""CTranslate2 with the weights that `nmt export` would write."""

from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import ctranslate2
from protocol import Job, Result, serve
from translating import LONGER, in_batches
from weights import read_weights

from nmt.export import ctranslate2 as export
from nmt.text.tokenizer import Tokenizer

ALMOST_NONE = 1e-9
"""A length penalty by which its scores are sums; none at all would make them mean values."""
NUMBERS = {"fp32": "float32", "int8": "int8"}


def translate(job: Job) -> Result:
    """Translate batch by batch; word pieces in, word pieces out."""
    folder, tokenizer = Path(job["work"]) / "model", Tokenizer.load(Path(job["checkpoint"]))
    folder.mkdir()
    numbers = NUMBERS[job["precision"]]
    export.write(folder, *read_weights(job), tokenizer, numbers)
    load = partial(ctranslate2.Translator, str(folder), device="cpu", compute_type=numbers)
    shared, apart = load(intra_threads=job["threads"]), load(inter_threads=job["threads"], intra_threads=1)
    ids = {piece: index for index, piece in enumerate(tokenizer.vocabularies[1])}

    def translate_by(translator: Any, sources: list[list[str]]) -> list[list[int]]:
        found = translator.translate_batch(
            sources,
            max_batch_size=job["batch"],
            beam_size=job["beam"],
            num_hypotheses=job["beam"],
            length_penalty=ALMOST_NONE,
            return_scores=True,
            max_decoding_length=max(map(len, sources)) + LONGER,
        )
        return [[ids[piece] for piece in _best(each, job["alpha"])] for each in found]

    def run_in_threads(blocks: list[list[list[str]]]) -> list[list[list[int]]]:
        found = iter(translate_by(apart, [source for block in blocks for source in block]))
        return [list(islice(found, len(block))) for block in blocks]

    sources = [tokenizer.source_pieces(source) for source in job["sources"]]
    return in_batches(job, partial(translate_by, shared), run_in_threads, sources)


def _best(found: Any, alpha: float) -> list[str]:
    """The best by the length penalty of the others."""
    ranked = zip(found.scores, found.hypotheses, strict=True)
    return list(max(ranked, key=lambda each: each[0] / ((5 + len(each[1]) + 1) / 6) ** alpha)[1])


if __name__ == "__main__":
    serve({"translate": translate})
