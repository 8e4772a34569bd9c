"""COMET, the similarity of meaning of source, translation and reference: a metric, and a utility (extra `comet`)."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.risk import Utility
from nmt.errors import UserError
from nmt.storage.files import checksum

BATCH_SENTENCES = 16


def comet_score(
    model: str, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], device: str
) -> tuple[float, str]:
    """Return COMET, as a percentage, with its signature."""
    comet, checkpoint = load(model, "evaluation.comet")
    rows = zip(sources, hypotheses, references, strict=True)
    data = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in rows]
    gpus = int(device == "cuda")
    found = comet.predict(data, batch_size=BATCH_SENTENCES, gpus=gpus, progress_bar=False, num_workers=0)
    name, library = Path(model).name if Path(model).is_dir() else model, version("unbabel-comet")
    signature = f"nrefs:1|model:{name}|weights:{checksum(checkpoint)[:8]}|version:comet-{library}"
    return 100 * float(found.system_score), signature


def load(name: str, setting: str) -> tuple[Any, Path]:
    """Return a model and its checkpoint, given its folder or its name in the cache of Hugging Face.

    Errors name the setting.
    """
    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import

        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (OSError, ValueError) as error:
            raise UserError(
                f"{setting}={name} is neither a folder nor a model in the cache of Hugging Face: download it "
                f"with `hf download {name}`, or name the folder with its checkpoints/model.ckpt and hparams.yaml"
            ) from error
    checkpoint = folder / "checkpoints" / "model.ckpt"
    for file in (checkpoint, folder / "hparams.yaml"):
        if not file.is_file():
            raise UserError(f"{setting}={name}: there is no {file}, so this is no model of COMET")
    return _load(checkpoint), checkpoint


@lru_cache(maxsize=1)
def _load(checkpoint: Path) -> Any:
    """Load a checkpoint; only weights are read, so no code in the file can run."""
    try:
        from comet.models import str2model  # noqa: PLC0415 - slow to import, and optional
    except ImportError as error:
        command = '.venv/bin/pip install unbabel-comet "setuptools<81" "pyarrow<26"'  # comet needs NumPy 1
        raise UserError(f"COMET needs the package unbabel-comet, in an environment of its own: {command}") from error
    try:
        settings = yaml.safe_load((checkpoint.parent.parent / "hparams.yaml").read_text(encoding="utf-8"))
        kind = str2model[settings.pop("class_identifier")]
        model = kind(**{**settings, "load_pretrained_weights": False, "local_files_only": True})
        model.load_state_dict(torch.load(checkpoint, map_location="cpu", weights_only=True)["state_dict"], strict=False)
    except Exception as error:  # unpickling, YAML, missing keys, sizes that do not fit, an encoder that is not there
        reason = " ".join(str(error).split())
        raise UserError(f"{checkpoint} cannot be loaded as a model of COMET ({reason}): download it again") from error
    return model.eval()


def by_comet(config: DecodingConfig, device: torch.device) -> Utility:
    """Return a function that compares all pairs of translations (N, N) of a source on a device, as percentages.

    Each sentence is encoded once, and only the small network on top compares pairs. Models that read a translation
    together with its reference cannot be used.
    """
    model, checkpoint = load(config.comet, "decoding.comet")
    from comet.models import RegressionMetric  # noqa: PLC0415 - slow to import, and optional

    if type(model) is not RegressionMetric:  # its subclasses have no references
        raise UserError(
            f"decoding.comet={config.comet}: {checkpoint} is a {type(model).__name__}, which cannot compare pairs of "
            "translations quickly: use a model of the kind of Unbabel/wmt22-comet-da"
        )

    @torch.no_grad()
    def compare(translations: Sequence[str], source: str) -> NDArray[np.float64]:
        model.to(device)  # `predict` of the metric may have moved it
        encoded = _encode(model, [source, *translations], device)
        first, references = encoded[:1].expand(len(translations), -1), encoded[1:]
        scores = [model.estimate(first, each.expand_as(references), references).score for each in references]
        return 100 * torch.stack(scores).cpu().double().numpy()

    return compare


def _encode(model: Any, sentences: Sequence[str], device: torch.device) -> Tensor:
    """Return the vectors (N, d) of sentences."""
    vectors = []
    for first in range(0, len(sentences), BATCH_SENTENCES):
        batch = model.encoder.prepare_sample(sentences[first : first + BATCH_SENTENCES])
        ids, mask = batch["input_ids"].to(device), batch["attention_mask"].to(device)
        vectors.append(model.get_sentence_embedding(ids, mask))
    return torch.cat(vectors)
