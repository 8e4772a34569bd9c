"""COMET as a metric of `eval`."""

from pathlib import Path

import torch

from nmt.decoding.comet import BATCH_SENTENCES, load
from nmt.evaluation.metric import Score, Translated
from nmt.storage.files import checksum


def comet_score(text: Translated) -> Score:
    """Return COMET, as a percentage, of the translations compared with the first reference."""
    comet = load(text.comet, "evaluation.comet")
    rows = zip(text.sources, text.hypotheses, text.references[0], strict=True)
    data = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in rows]
    gpus = int(torch.cuda.is_available())
    found = comet.model.predict(data, batch_size=BATCH_SENTENCES, gpus=gpus, progress_bar=False, num_workers=0)
    name = Path(text.comet).name if Path(text.comet).is_dir() else text.comet
    signature = f"nrefs:1|model:{name}|weights:{checksum(comet.checkpoint)[:8]}|version:comet-{comet.library}"
    return Score(100 * float(found.system_score), signature)
