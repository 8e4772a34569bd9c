"""COMET, the similarity of meaning of source, translation and reference (extra `comet`)."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import yaml

from nmt.config.folders import expanded
from nmt.errors import UserError
from nmt.storage.files import checksum

BATCH_SENTENCES = 16


def comet_score(
    name: str, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], device: str
) -> tuple[float, str]:
    """Return COMET, as a percentage, with its signature."""
    checkpoint = find_checkpoint(name)
    rows = zip(sources, hypotheses, references, strict=True)
    data = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in rows]
    gpus = int(device == "cuda")
    found = load(checkpoint).predict(data, batch_size=BATCH_SENTENCES, gpus=gpus, progress_bar=False, num_workers=0)
    model, library = checkpoint.parent.parent.name if expanded(name).is_dir() else name, version("unbabel-comet")
    signature = f"nrefs:1|model:{model}|weights:{checksum(checkpoint)[:8]}|version:comet-{library}"
    return 100 * float(found.system_score), signature


def comet_quality(name: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return what a model of COMET that needs no reference thinks of sources and translations, as percentages."""
    model = load(find_checkpoint(name))
    if model.requires_references():
        raise UserError(f"evaluation.comet={name} needs references: name a model without, or leave it out")
    data, gpus = [{"src": source, "mt": translation} for source, translation in pairs], int(torch.cuda.is_available())
    found = model.predict(data, batch_size=BATCH_SENTENCES, gpus=gpus, progress_bar=False, num_workers=0)
    return [100 * float(score) for score in found.scores]


def find_checkpoint(name: str) -> Path:
    """Return the checkpoint of a model, given its folder or its name in the cache of Hugging Face."""
    folder = expanded(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import

        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (OSError, ValueError) as error:
            raise UserError(
                f"evaluation.comet={name} is neither a folder nor a model in the cache of Hugging Face: download it "
                f"with `hf download {name}`, or name the folder with its checkpoints/model.ckpt and hparams.yaml"
            ) from error
    return folder / "checkpoints" / "model.ckpt"


@lru_cache(maxsize=1)
def load(checkpoint: Path) -> Any:
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
