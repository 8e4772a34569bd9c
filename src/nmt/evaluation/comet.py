"""COMET as a metric of `eval`."""

from pathlib import Path

from nmt.evaluation.comet_model import BATCH_SENTENCES, load
from nmt.evaluation.metric import Score, Translated
from nmt.storage.files import checksum


def comet_score(text: Translated) -> Score:
    """Return COMET, as a percentage, of the translations compared with the first reference."""
    model = text.settings.comet
    comet = load(model, "evaluation.comet")
    rows = zip(text.sources, text.hypotheses, text.references[0], strict=True)
    data = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in rows]
    gpus = int(text.device == "cuda")
    found = comet.model.predict(data, batch_size=BATCH_SENTENCES, gpus=gpus, progress_bar=False, num_workers=0)
    name = Path(model).name if Path(model).is_dir() else model
    signature = f"nrefs:1|model:{name}|weights:{checksum(comet.checkpoint)[:8]}|version:comet-{comet.library}"
    return Score(100 * float(found.system_score), signature)
