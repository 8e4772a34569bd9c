"""Every setting: its name, type, default and meaning, and whether it may change when a run is resumed.

The defaults are the base model of "Attention Is All You Need" on WMT14 English-German; the files in
`conf/` state differences from them, and show the paper's values. This package uses the standard library only, so any
module may import it.

The groups of settings that features extend are made when they are first used, because a feature's settings may import
modules of this package.
"""

from typing import TYPE_CHECKING, Any

from nmt.config.schema.corpora import MAIN

if TYPE_CHECKING:
    from nmt.config.schema.commands import (
        BatchConfig,
        DescribeConfig,
        TranslateConfig,
    )
    from nmt.config.schema.config import Config
    from nmt.config.schema.data import DataConfig, TokenizerConfig
    from nmt.config.schema.decoding import DecodingConfig, EvaluationConfig
    from nmt.config.schema.model import ModelConfig
    from nmt.config.schema.runtime import PathsConfig, RuntimeConfig
    from nmt.config.schema.training import AveragingConfig, TrainingConfig
else:

    def __getattr__(name: str) -> Any:
        from nmt.config.schema.extend import classes  # noqa: PLC0415

        if name.startswith("_") or name not in classes():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return classes()[name]


__all__ = [
    "MAIN",
    "AveragingConfig",
    "BatchConfig",
    "Config",
    "DataConfig",
    "DecodingConfig",
    "DescribeConfig",
    "EvaluationConfig",
    "ModelConfig",
    "PathsConfig",
    "RuntimeConfig",
    "TokenizerConfig",
    "TrainingConfig",
    "TranslateConfig",
]
