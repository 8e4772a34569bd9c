"""Export to this project's own format: a checkpoint without the training state."""

from collections.abc import Sequence
from pathlib import Path

from nmt.config.saved import from_yaml
from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.decoding.engine import Engine
from nmt.decoding.limits import MAX_SOURCE_TOKENS
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.features.exports.exporter import TrainedModel, example_sentence
from nmt.runs import checkpoint_files
from nmt.runs.checkpoints import load


class SafetensorsExporter:
    """Writes weights, tokenizer and settings, which nmt itself loads."""

    library = "safetensors"

    def check(self, config: ModelConfig) -> None:
        """Accept every model."""

    def positions(self, config: ModelConfig) -> int:
        """See `Exporter.positions`."""
        return config.max_positions if config.positions == "learned" else MAX_SOURCE_TOKENS

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """See `Exporter.write`."""
        checkpoint = trained.checkpoint
        checkpoint_files.write(
            folder,
            step=checkpoint.step,
            weights=checkpoint.weights,
            trainer=None,
            tokenizer_files=checkpoint.tokenizer_files,
            config_text=checkpoint.config_text,
            valid=checkpoint.meta.valid,
            origin=checkpoint.meta.origin,
        )

    def native_engine(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """See `Exporter.native_engine`."""
        return engine

    def open(self, folder: Path, native: TorchEngine, lines: Sequence[str]) -> Engine:
        """See `Exporter.open`."""
        saved = load(folder)
        model, tokenizer = load_model(saved, from_yaml(saved.config_text).model, native.device)
        return TorchEngine([model], tokenizer, native.config, native.device)

    def client(self, folder: Path) -> None:
        """See `Exporter.client`; its program searches as the export was compared."""

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """See `Exporter.usage`."""
        sentence = example_sentence(settings.data)
        return (
            f"```sh\necho '{sentence}' | nmt translate checkpoint=. decoding.beam={decoding.beam} "
            f"decoding.alpha={decoding.alpha:g} decoding.extra_length={decoding.extra_length}\n```\n"
        )

    def search_note(self, decoding: DecodingConfig) -> str:
        """See `Exporter.search_note`."""
        return ""
