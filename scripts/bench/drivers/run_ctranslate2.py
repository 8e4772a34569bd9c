"""Translate with CTranslate2, with the weights that `nmt export` writes."""

from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import ctranslate2
from protocol import Job, Result, serve
from translating import MAX_EXTRA_PIECES, in_batches, translated_controls
from weights import read_weights

from nmt.config.tree import Config
from nmt.export.ctranslate2 import TARGET
from nmt.export.target import TrainedModel, export
from nmt.text.tokenizer import Tokenizer

PATIENCE = 2
"""Finished hypotheses per beam before the search of a sentence ends: about as many steps as nmt's search takes."""
TINY_LENGTH_PENALTY = 1e-9
"""Makes CTranslate2's scores sums of log-probabilities; with a penalty of 0 they would be means."""
CONTROLS: dict[str, str | dict[str, Any]] = {
    "no_repeat_ngram": "no_repeat_ngram_size",
    "min_length": "min_decoding_length",
    "suppress_unknown": "disable_unk",
    "nbest": "num_hypotheses",
    "strategy": {"beam_size": 1},
    "top_k": "sampling_topk",
}
"""Arguments of `translate_batch` by the settings that they correspond to; see `translated_controls`."""
COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}


def translate(job: Job) -> Result:
    """Translate batch by batch, from word pieces to word pieces."""
    controls = translated_controls(job, CONTROLS)
    folder, tokenizer = Path(job["folder"]) / "model", Tokenizer.load(Path(job["checkpoint"]))
    folder.mkdir()
    compute_type = COMPUTE_TYPES[job["precision"]]
    config, weights = read_weights(job)
    trained = TrainedModel(Config(model=config), weights, tokenizer, quantization=compute_type)
    export(TARGET, folder, trained)
    load = partial(ctranslate2.Translator, str(folder), device="cpu", compute_type=compute_type)
    sequential, parallel = load(intra_threads=job["threads"]), load(inter_threads=job["threads"], intra_threads=1)
    ids = {piece: index for index, piece in enumerate(tokenizer.vocabularies[1])}

    def translate_by(translator: Any, sources: list[list[str]]) -> list[list[int]]:
        results = translator.translate_batch(
            sources,
            max_batch_size=job["batch"],
            length_penalty=TINY_LENGTH_PENALTY,
            return_scores=True,
            max_decoding_length=max(map(len, sources)) + MAX_EXTRA_PIECES,
            **{"beam_size": job["beam"], "num_hypotheses": job["beam"], "patience": PATIENCE, **controls},
        )
        return [[ids[piece] for piece in _best(each, job["alpha"])] for each in results]

    def translate_parallel(inputs: list[list[list[str]]]) -> list[list[list[int]]]:
        translations = iter(translate_by(parallel, [source for batch in inputs for source in batch]))
        return [list(islice(translations, len(batch))) for batch in inputs]

    sources = [tokenizer.source_pieces(source) for source in job["sources"]]
    return in_batches(job, partial(translate_by, sequential), translate_parallel, sources)


def _best(result: Any, alpha: float) -> list[str]:
    """Return the best hypothesis by the length penalty that the other engines use."""
    scored = zip(result.scores, result.hypotheses, strict=True)
    return list(max(scored, key=lambda each: each[0] / ((5 + len(each[1]) + 1) / 6) ** alpha)[1])


if __name__ == "__main__":
    serve({"translate": translate})
