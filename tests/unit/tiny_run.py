"""Write a run with a small random model, for tests of what loads one."""

from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.saved import to_yaml
from nmt.config.tree import Config, PathsConfig
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.layout import RunLayout
from nmt.storage.files import link
from nmt.text.tokenizer import Tokenizer
from tests.unit import small_models as models

STEP = 8


def write_tiny_run(
    folder: Path, model: TranslationModel | None = None, tokenizer: Tokenizer | None = None, **data: object
) -> Path:
    """Write a run whose averaged checkpoint is its only one; return its folder. It always has the same weights.

    A given model has the vocabulary of the tokenizer, which is that of `make_tokenizer` by default.
    """
    tokenizer = tokenizer or models.make_tokenizer()
    model = model or models.make_model(tokenizer, positions="sinusoidal")
    config = Config(
        name=folder.name,
        data=DataConfig(**data),  # type: ignore[arg-type]
        model=model.config,
        decoding=DecodingConfig(extra_length=8, beam=3),
        paths=PathsConfig(outputs=str(folder.parent)),
    )
    path = Checkpoints(folder).save(
        Checkpoint(
            meta=CheckpointMeta(step=STEP),
            weights=model.state_dict(),
            trainer={},
            tokenizer_files=tokenizer.files,
            config_text=to_yaml(config),
        )
    )
    link(RunLayout(folder).averaged, path.name)
    return folder
