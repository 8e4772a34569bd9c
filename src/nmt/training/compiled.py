"""Compilation of the model by torch.compile."""

from torch.fx.experimental import _config as fx_config

from nmt.model.interface import TranslationModel
from nmt.model.kernels.backend import mark_constants


def compile_model(model: TranslationModel) -> None:
    """Compile the model at its first call: one graph for batches of all sizes."""
    # two sizes that are equal in the first batch, such as those of source and target, may differ in the next
    fx_config.use_duck_shape = False
    mark_constants()
    model.compile(dynamic=True)
