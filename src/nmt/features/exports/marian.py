"""Export to the format of Marian, which bergamot reads as well."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from nmt.config.choices import CHOICES
from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.decoding.engine import Engine
from nmt.decoding.limits import MAX_SOURCE_TOKENS
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.features.exports import huggingface
from nmt.features.exports.exporter import (
    SIZES_AND_TRAINING,
    Expressible,
    TrainedModel,
    check_expressible,
    example_sentence,
)
from nmt.features.exports.fixed_positions import fixed_table
from nmt.marian.files import BINARY, INT8_BINARY, NPZ, read_binary, read_npz, write_binary, write_npz
from nmt.marian.vocabularies import read_vocabularies, write_vocabularies
from nmt.marian.weights import from_marian, to_marian
from nmt.model.build import build_model
from nmt.storage.files import write_text
from nmt.text.special import BOS
from nmt.text.tokenizer import Tokenizer

SEARCH = "decoder.yml"
"""The settings of Marian's decoder."""
INT8_MULTIPLE = 64
"""The number of which the widths of int8 matrices must be multiples on all processors."""
PROBED_POSITIONS, PROBED_WIDTH = 64, 16
"""The size of the table by which position encodings are compared with Marian's."""


class MarianExporter:
    """Writes a model for Marian and bergamot, with its SentencePiece vocabularies."""

    library = "marian"

    def check(self, config: ModelConfig) -> None:
        """See `Exporter.check`."""
        check_expressible("marian", config, _expressible(config))

    def positions(self, config: ModelConfig) -> int:
        """See `Exporter.positions`."""
        return MAX_SOURCE_TOKENS

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """See `Exporter.write`; int8 weights are written beside those in float32."""
        weights, int8 = trained.checkpoint.weights, trained.quantization == "int8"
        check_start(weights)
        if int8:
            check_int8(trained.settings.model)
        write_weights(folder, trained.settings.model, weights, int8=int8)
        search = {
            "relative-paths": True,
            "models": [NPZ],
            "vocabs": list(write_vocabularies(folder, trained.tokenizer)),
            "beam-size": trained.decoding.beam,
            "normalize": trained.decoding.alpha,
            "word-penalty": 0,
        }
        write_text(folder / SEARCH, yaml.safe_dump(search, sort_keys=False))

    def native_engine(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """See `Exporter.native_engine`; bergamot searches greedily."""
        limit = huggingface.longest(trained, self.positions(trained.settings.model))
        return huggingface.searching(engine, beam=1, limit=limit)

    def open(self, folder: Path, native: TorchEngine, lines: Sequence[str]) -> Engine:
        """See `Exporter.open`; reads the files back into our model, with the rounded weights if there are any."""
        config = native.models[0].config
        tokenizer = Tokenizer(*read_vocabularies(folder))
        rounded = (folder / INT8_BINARY).is_file()
        arrays = read_binary(folder / INT8_BINARY) if rounded else read_npz(folder / NPZ)
        words = tokenizer.source_size, tokenizer.target_size
        model = build_model(config, *words)
        model.load_state_dict(from_marian(config, arrays, words))
        opened = TorchEngine([model.eval()], tokenizer, native.config, native.device)
        opened.max_target_tokens = native.max_target_tokens
        return opened

    def client(self, folder: Path) -> None:
        """See `Exporter.client`; bergamot searches as the export was compared."""

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """See `Exporter.usage`."""
        text = example_sentence(settings.data)
        return f'With Marian:\n\n```sh\necho "{text}" | marian-decoder --config {SEARCH}\n```\n'

    def search_note(self, decoding: DecodingConfig) -> str:
        """See `Exporter.search_note`."""
        return (
            "the export was compared with greedy search, which bergamot uses unless it is told otherwise, and not with "
            f"beam {decoding.beam} and alpha {decoding.alpha:g}. {SEARCH} tells Marian to use this beam, but Marian "
            "divides by length^alpha. Neither generates unknown words. bergamot splits text into sentences. It reads "
            f"{BINARY} with `gemm-precision: float32`, and {INT8_BINARY} with `gemm-precision: int8shiftAll`, which "
            "rounds activations as well; the comparison here rounds the weights only"
        )


def check_start(weights: Mapping[str, Tensor]) -> None:
    """Refuse a model whose decoder does not begin with a zero vector, as Marian's does."""
    vectors = weights["vectors.shared"] if "vectors.shared" in weights else weights["vectors.target"]
    if vectors[BOS].any():
        raise UserError(
            "export.target=marian cannot express a model whose translations do not begin with a zero vector: "
            "docs/deploy.md says how to train one for Marian, or adapt one"
        )


def check_int8(config: ModelConfig) -> None:
    """Refuse widths that Marian's int8 products do not support."""
    for name in ("d_model", "d_ff"):
        if getattr(config, name) % INT8_MULTIPLE:
            raise UserError(
                f"export.target=marian with export.quantization=int8 cannot express model.{name}="
                f"{getattr(config, name)}, only multiples of {INT8_MULTIPLE}: use export.quantization=float32"
            )


def write_weights(folder: Path, config: ModelConfig, weights: Mapping[str, Tensor], *, int8: bool) -> None:
    """Write the model: for Marian in float32, and for bergamot in int8 or float32."""
    arrays = to_marian(config, weights)
    described = yaml.safe_dump(model_settings(config, arrays), sort_keys=False)
    write_npz(folder / NPZ, arrays, described)
    write_binary(folder / (INT8_BINARY if int8 else BINARY), arrays, described, int8=int8)


def model_settings(config: ModelConfig, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that Marian needs to build the model."""
    tied = config.tie_embeddings
    source, target = ("Wemb", "Wemb") if tied else ("encoder_Wemb", "decoder_Wemb")
    return {
        "version": "v1.12.0",
        "type": "transformer",
        "input-types": [],
        "dim-vocabs": [len(arrays[source]), len(arrays[target])],
        "dim-emb": config.d_model,
        "lemma-dim-emb": 0,
        "enc-depth": config.encoder_depth,
        "dec-depth": config.decoder_depth,
        "tied-embeddings": False,
        "tied-embeddings-src": False,
        "tied-embeddings-all": tied,
        "transformer-heads": config.heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": config.activation,
        "transformer-decoder-autoreg": "self-attention",
        "transformer-decoder-dim-ffn": config.d_ff,
        "transformer-decoder-ffn-depth": 2,
        "transformer-guided-alignment-layer": "last",
        "transformer-no-projection": False,
        "transformer-pool": False,
        "transformer-rnn-projection": False,
        "transformer-tied-layers": [],
        "transformer-train-position-embeddings": False,
        "transformer-preprocess": "",
        "transformer-postprocess": "an",
        "transformer-postprocess-emb": "",
        "transformer-postprocess-top": "",
        "layer-normalization": False,
        "right-left": False,
        "skip": False,
        "ulr": False,
        "ulr-dim-emb": 0,
        "ulr-trainable-transformation": False,
        "output-omit-bias": False,
    }


def _expressible(config: ModelConfig) -> Expressible:
    head = (config.d_model // config.heads,)
    return {
        **SIZES_AND_TRAINING,
        "d_k": head,
        "d_v": head,
        "kv_heads": (config.heads,),
        "norm": ("layer",),
        "norm_placement": ("post",),  # Marian's pre-norm leaves keys and values of self-attention as they are
        "activation": ("relu", "swish"),  # Marian's gelu is an approximation, x times the logistic function of 1.702 x
        "positions": tuple(each for each in CHOICES["model.positions"] if _adds_marians_sinusoids(each)),
    }


def _adds_marians_sinusoids(positions: str) -> bool:
    """Return whether positions of this name add Marian's sinusoids, and do nothing else."""
    table = fixed_table(ModelConfig(d_model=PROBED_WIDTH, heads=1, positions=positions), PROBED_POSITIONS)
    pairs = PROBED_WIDTH // 2
    angles = torch.arange(PROBED_POSITIONS)[:, None] * 10_000 ** (-torch.arange(pairs) / (pairs - 1))
    expected = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    return table is not None and torch.allclose(table, expected, atol=1e-4)
