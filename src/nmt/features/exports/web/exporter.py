"""Export to a web page that translates in the browser, offline, without a server."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.features.exports import huggingface, onnx
from nmt.features.exports.exporter import ANY, TrainedModel, check_expressible
from nmt.features.exports.onnx_graphs import DECODER, ENCODER, quantize, write_graphs
from nmt.features.exports.tokenizer_json import (
    check_tokenizer_is_expressible,
    check_tokenizer_json,
    tokenizer_json,
)
from nmt.features.exports.web.engine import WebEngine
from nmt.features.exports.web.files import runtime_files, write_page
from nmt.features.exports.web.word_vectors import share_word_vectors
from nmt.page import sentences
from nmt.storage.files import write_json, write_text

MODEL = "model"
"""The folder of the model."""
TOKENIZER, FACTS = f"{MODEL}/tokenizer.json", f"{MODEL}/model.json"


class WebExporter:
    """Writes a folder of static files."""

    library = "onnxruntime-web"

    def check(self, config: ModelConfig) -> None:
        """See `Exporter.check`; our own search takes heads of any width."""
        check_expressible("web", config, {**onnx.expressible(config), "d_k": ANY, "d_v": ANY})

    def positions(self, config: ModelConfig) -> int:
        """See `Exporter.positions`."""
        return onnx.OnnxExporter().positions(config)

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """See `Exporter.write`."""
        check_tokenizer_is_expressible("web", trained.settings, trained.tokenizer)
        runtime = runtime_files(trained.runtime)
        model, _ = load_model(trained.checkpoint, trained.settings.model, huggingface.CPU)
        positions = self.positions(trained.settings.model)
        (folder / MODEL).mkdir()
        write_graphs(folder / MODEL, model, positions, shows_attention=True)
        if trained.quantization == "int8":
            _keep_quantized(folder / MODEL)
        tokenizer = tokenizer_json(trained.tokenizer.contents[0])
        write_text(folder / TOKENIZER, json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")))
        write_json(folder / FACTS, facts(trained, positions))
        write_page(folder, runtime)

    def native_engine(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """See `Exporter.native_engine`; the page searches as nmt does."""
        return engine

    def open(self, folder: Path, native: TorchEngine, lines: Sequence[str]) -> Engine:
        """See `Exporter.open`."""
        check_tokenizer_json(str(folder / TOKENIZER), native.tokenizer, lines)
        positions = self.positions(native.models[0].config)
        return WebEngine(folder / MODEL, native.tokenizer, native.config, positions, "")

    def client(self, folder: Path) -> None:
        """See `Exporter.client`; the page searches as the export was compared."""

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """See `Exporter.usage`."""
        return (
            "Put the folder on any server of static files, and open it in a browser. On this machine:\n\n"
            "```sh\n"
            "python3 -m http.server --bind 127.0.0.1 --directory . 8000\n"
            "```\n\n"
            "Then open http://127.0.0.1:8000. The first visit loads all files; after that the page translates offline "
            "and asks no server. Browsers keep files of HTTPS addresses and of this machine only.\n"
        )

    def search_note(self, decoding: DecodingConfig) -> str:
        """See `Exporter.search_note`."""
        return (
            f"the page searches as nmt does, with beam {decoding.beam} and alpha {decoding.alpha:g}, on one processor "
            "core. It splits text into sentences by punctuation, and shows what words attend to, as the mean of all "
            "layers and heads. onnxruntime-web in the folder `runtime` has the MIT licence"
        )


def facts(trained: TrainedModel, positions: int) -> dict[str, Any]:
    """Return what the page needs to know of the model, with the rules by which text is split into sentences."""
    model, data, search = trained.settings.model, trained.settings.data, trained.decoding
    return {
        "name": trained.settings.name,
        "languages": [data.source_lang, data.target_lang],
        "search": {"beam": search.beam, "alpha": search.alpha, "extra_length": search.extra_length},
        "max_tokens": {"source": positions, "target": positions},
        "cache": {
            "layers": model.decoder_depth,
            "heads": model.heads,
            "key_width": model.key_size,
            "value_width": model.value_size,
        },
        "splitting": {
            "line": sentences.LINE.pattern,
            "token": sentences.TOKEN.pattern,
            "initials": sentences.INITIALS.pattern,
            "stops": list(sentences.STOPS),
            "wide_stops": sentences.WIDE_STOPS,
            "opening": sentences.OPENING,
            "closing": sentences.CLOSING,
            "abbreviations": sorted(sentences.ABBREVIATIONS),
            "max_characters": sentences.MAX_CHARACTERS,
        },
    }


def _keep_quantized(folder: Path) -> None:
    """Replace the graphs by those with int8 weights, and let them share the word vectors."""
    quantize(folder)
    for name in (ENCODER, DECODER):
        (folder / f"{name}{onnx.QUANTIZED}.onnx").replace(folder / f"{name}.onnx")
    share_word_vectors(folder)
