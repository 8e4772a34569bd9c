"""Export to ONNX, in the layout that transformers.js and optimum read."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from nmt.config.checks import SEEN_IN_WEIGHTS, marked
from nmt.config.choices import CHOICES
from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.decoding.engine import Engine
from nmt.decoding.limits import MAX_SOURCE_TOKENS
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.features.exports import huggingface
from nmt.features.exports.exporter import (
    ANY,
    SIZES_AND_TRAINING,
    Expressible,
    TrainedModel,
    check_expressible,
    example_sentence,
)
from nmt.features.exports.onnx_engine import OnnxEngine
from nmt.features.exports.onnx_graphs import DECODER, ENCODER, quantize, write_graphs
from nmt.features.exports.tokenizer_json import (
    check_tokenizer_is_expressible,
    check_tokenizer_json,
    tokenizer_config,
    tokenizer_json,
)
from nmt.model.interface import TranslationModel
from nmt.storage.files import write_json, write_text
from nmt.text.special import BOS, EOS, PAD
from nmt.text.tokenizer import Tokenizer

VERSION = "4.3.1"
"""The version of transformers.js that the page loads, which the tests use."""
GRAPHS = "onnx"
"""The folder of the graphs."""
QUANTIZED = "_quantized"
"""The ending of the names of graphs with int8 weights."""


class OnnxExporter:
    """Writes graphs for encoder and decoder, and the tokenizer."""

    library = "transformers.js"
    target = "onnx"

    def check(self, config: ModelConfig) -> None:
        """See `Exporter.check`."""
        check_expressible(self.target, config, expressible(config))

    def positions(self, config: ModelConfig) -> int:
        """See `Exporter.positions`."""
        return config.max_positions if config.positions == "learned" else MAX_SOURCE_TOKENS

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """See `Exporter.write`; int8 weights are written beside those in float32."""
        settings = trained.settings
        check_tokenizer_is_expressible(self.target, settings, trained.tokenizer)
        positions = self.positions(settings.model)
        model, _ = load_model(trained.checkpoint, settings.model, huggingface.CPU)
        limit = huggingface.longest(trained, positions)
        write(folder, model, trained.tokenizer, positions, limit, trained.quantization)

    def native_engine(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """See `Exporter.native_engine`; transformers.js has greedy search only."""
        limit = huggingface.longest(trained, self.positions(trained.settings.model))
        return huggingface.searching(engine, beam=1, limit=limit)

    def open(self, folder: Path, native: TorchEngine, lines: Sequence[str]) -> Engine:
        """See `Exporter.open`; the graphs with int8 weights if there are any."""
        check_tokenizer_json(str(folder / "tokenizer.json"), native.tokenizer, lines)
        ending = QUANTIZED if (folder / GRAPHS / f"{ENCODER}{QUANTIZED}.onnx").is_file() else ""
        return OnnxEngine(folder / GRAPHS, native.tokenizer, native.config, native.max_target_tokens, ending)

    def client(self, folder: Path) -> None:
        """See `Exporter.client`; its program searches as the export was compared."""

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """See `Exporter.usage`."""
        text = example_sentence(settings.data)
        return (
            "In a browser or under Node, with this folder as `models/own`. With float32 weights, write `fp32` for "
            "`q8`:\n\n"
            "```js\n"
            'import { AutoModelForSeq2SeqLM, AutoTokenizer, env } from "@huggingface/transformers";\n'
            "env.allowRemoteModels = false;\n"
            'env.localModelPath = "models";\n'
            'const tokenizer = await AutoTokenizer.from_pretrained("own");\n'
            'const model = await AutoModelForSeq2SeqLM.from_pretrained("own", { dtype: "q8" });\n'
            f'const found = await model.generate(tokenizer("{text}"));\n'
            "console.log(tokenizer.batch_decode(found, { skip_special_tokens: true })[0]);\n"
            "```\n"
        )

    def search_note(self, decoding: DecodingConfig) -> str:
        """See `Exporter.search_note`."""
        return (
            "transformers.js searches greedily (it takes the first token of each beam if `num_beams` is larger), and "
            f"not as nmt does with beam {decoding.beam} and alpha {decoding.alpha:g}; the export was compared that "
            f"way. Unknown words are left out. {huggingface.SPECIAL_TEXT}"
        )


class WebExporter(OnnxExporter):
    """Writes the same folder with a page that translates in the browser, and with int8 weights without the others."""

    target = "web"

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """See `Exporter.write`."""
        super().write(folder, trained)
        dtype = "fp32"
        if trained.quantization == "int8":
            dtype = "q8"
            for name in (ENCODER, DECODER):
                (folder / GRAPHS / f"{name}.onnx").unlink()
        data = trained.settings.data
        values = {"name": trained.settings.name, "source": data.source_lang, "target": data.target_lang}
        page = Template(files(__package__).joinpath("index.html").read_text(encoding="utf-8"))
        escaped = {key: escape(value) for key, value in values.items()}
        write_text(folder / "index.html", page.substitute(escaped, dtype=dtype, version=VERSION))

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """See `Exporter.usage`."""
        return (
            "Put the folder on any server of static files, and open it in a browser. On this machine:\n\n"
            "```sh\n"
            "python3 -m http.server --bind 127.0.0.1 --directory . 8000\n"
            "```\n\n"
            "Then open http://127.0.0.1:8000. The page translates in the browser and sends no text anywhere. It takes "
            f"transformers.js {VERSION} from a network for the distribution of programs, unless these files are in the "
            "folder: `transformers.min.js` of the npm package @huggingface/transformers, and "
            "`ort-wasm-simd-threaded.asyncify.mjs` and `.wasm` of the onnxruntime-web that it depends on.\n"
        )


def write(
    folder: Path, model: TranslationModel, tokenizer: Tokenizer, positions: int, limit: int, quantization: str
) -> None:
    """Write all files, for sentences of at most `positions` tokens and translations of at most `limit`."""
    (folder / GRAPHS).mkdir()
    write_graphs(folder / GRAPHS, model, positions)
    if quantization == "int8":
        quantize(folder / GRAPHS)
    special = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "decoder_start_token_id": BOS}
    described = {**huggingface.settings_json(model.config, tokenizer), "max_position_embeddings": positions}
    write_json(folder / "config.json", {**described, **special})
    search = huggingface.generation(1, limit)
    write_json(folder / "generation_config.json", {**special, "forced_eos_token_id": EOS, **search})
    write_json(folder / "tokenizer.json", tokenizer_json(tokenizer.contents[0]))
    write_json(folder / "tokenizer_config.json", tokenizer_config(tokenizer.contents[0], positions))


def expressible(config: ModelConfig) -> Expressible:
    """Return what the graphs can express: all that the model computes, with heads as clients expect them."""
    head = (config.d_model // config.heads,)
    return {
        **SIZES_AND_TRAINING,
        **dict.fromkeys(marked(config, SEEN_IN_WEIGHTS), ANY),
        "d_k": head,
        "d_v": head,
        "kv_heads": ANY,
        "norm": ("layer", "rms"),
        "norm_placement": ("post", "pre"),
        "activation": ("relu", "gelu", "swish", "swiglu"),
        "positions": tuple(CHOICES["model.positions"]),
    }
