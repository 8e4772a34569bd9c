"""Models of COMET: the similarity of meaning of source, translation and reference (extra `comet`)."""

from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from nmt.errors import UserError

BATCH_SENTENCES = 16


class Comet(NamedTuple):
    """A model of COMET."""

    model: Any
    library: str
    """The version of its library."""
    checkpoint: Path


def load(name: str, setting: str) -> Comet:
    """Load a model, given its folder or its name in the cache of Hugging Face; errors name the setting."""
    return _load(_find_checkpoint(name, setting))


def _find_checkpoint(name: str, setting: str) -> Path:
    """Return the checkpoint of a model: in a folder, or, by the model's name, in the cache of Hugging Face."""
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
    return checkpoint


@lru_cache(maxsize=1)
def _load(checkpoint: Path) -> Comet:
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
    return Comet(model.eval(), version("unbabel-comet"), checkpoint)
