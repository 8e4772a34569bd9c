"""Export to ONNX, in the layout that transformers.js and optimum read, and to a web page that runs it."""

from collections.abc import Sequence
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import torch

from nmt.config.checks import SEEN_IN_WEIGHTS, marked
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.export import huggingface
from nmt.export.onnx_graphs import DECODER, ENCODER, PAST, PRESENT, quantize, write_graphs
from nmt.export.target import (
    ANY,
    SIZES_AND_TRAINING,
    Expressible,
    Target,
    TrainedModel,
    check_expressible,
    example_sentence,
    positions,
)
from nmt.export.tokenizer_json import as_fast_tokenizer, check_tokenizer, tokenizer_config
from nmt.model.interface import TranslationModel
from nmt.packages import import_optional
from nmt.storage.files import write_json, write_text
from nmt.text.special import BOS, EOS
from nmt.text.tokenizer import Tokenizer

VERSION = "4.3.1"
"""The version of transformers.js that the page loads, which the tests use."""
GRAPHS = "onnx"
"""The folder of the graphs."""
QUANTIZED = "_quantized"
"""The ending of the names of graphs with int8 weights."""
NOTE = (
    "transformers.js searches greedily (it takes the first token of each beam if `num_beams` is larger), and the "
    f"export was compared with the model that way. Unknown words are left out. {huggingface.SPECIAL_TEXT}"
)


class Reader:
    """Greedy search with onnxruntime, one sentence at a time, as transformers.js searches.

    Products in int8 depend on the other sentences of a batch, because each is rounded by its largest number.
    """

    def __init__(self, folder: Path, trained: TrainedModel) -> None:
        runtime, tokenizers = import_optional("onnxruntime"), import_optional("tokenizers")
        self.tokenizer: Any = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.longest = trained.longest
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        ending = QUANTIZED if trained.quantization == "int8" else ""
        self.encoder, self.decoder = (
            runtime.InferenceSession(folder / GRAPHS / f"{name}{ending}.onnx", options) for name in (ENCODER, DECODER)
        )

    def translate(self, lines: Sequence[str]) -> list[str]:
        """See `Reader.translate`."""
        return [self.tokenizer.decode(self.search(line)) for line in lines]

    def search(self, line: str) -> list[int]:
        """Return the ids of a translation, with EOS if it ended before the limit."""
        encoded, cache = self._encode(line), self._empty_cache()
        found = [BOS]
        while found[-1] != EOS and len(found) < self.longest:
            scores, cache = self._decode(encoded, found[-1:], cache, use_cache=len(found) > 1)
            found.append(int(scores[0, -1].argmax()))
        return found[1:]

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """See `Reader.score`."""
        found = []
        for line, translation in zip(lines, translations, strict=True):
            labels = self.tokenizer.encode(translation).ids
            scores, _ = self._decode(self._encode(line), [BOS, *labels[:-1]], self._empty_cache(), use_cache=False)
            found.append(float(torch.from_numpy(scores[0]).log_softmax(-1)[range(len(labels)), labels].sum()))
        return found

    def _encode(self, line: str) -> dict[str, Any]:
        """Return what the decoder needs of a source sentence."""
        ids = np.array([self.tokenizer.encode(line).ids])
        mask = np.ones_like(ids)
        (states,) = self.encoder.run(None, {"input_ids": ids, "attention_mask": mask})
        return {"encoder_hidden_states": states, "encoder_attention_mask": mask}

    def _empty_cache(self) -> dict[str, Any]:
        """Return the cache that clients begin with: its length is 0."""
        shapes = {each.name: each.shape for each in self.decoder.get_inputs() if each.name.startswith(PAST)}
        return {name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in shapes.items()}

    def _decode(
        self, encoded: dict[str, Any], tokens: list[int], cache: dict[str, Any], *, use_cache: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Return the scores of the next tokens, and the cache for the next step."""
        feeds = {**encoded, **cache, "input_ids": np.array([tokens]), "use_cache_branch": np.array([use_cache])}
        names = [name.replace(PAST, PRESENT) for name in cache]
        scores, *present = self.decoder.run(["logits", *names], feeds)
        return scores, dict(zip(cache, present, strict=True))


def check(target: str, settings: Config, tokenizer: Tokenizer) -> None:
    """Refuse a model or a tokenizer that the files cannot express."""
    check_expressible(target, settings.model, expressible(settings.model))
    check_tokenizer(target, settings, tokenizer)


def write_export(folder: Path, trained: TrainedModel) -> None:
    """Write graphs for encoder and decoder, and the tokenizer; int8 weights are written beside those in float32."""
    settings = trained.settings
    model, _ = load_model(trained.checkpoint, settings.model, torch.device("cpu"))
    write(folder, model, trained.tokenizer, trained.longest, trained.quantization)


def write_page(folder: Path, trained: TrainedModel) -> None:
    """Write the same folder with a page that translates in the browser; int8 weights without those in float32."""
    write_export(folder, trained)
    rounded = trained.quantization == "int8"
    if rounded:
        for name in (ENCODER, DECODER):
            (folder / GRAPHS / f"{name}.onnx").unlink()
    data = trained.settings.data
    values = {"name": trained.settings.name, "source": data.source_lang, "target": data.target_lang}
    escaped = {key: escape(value) for key, value in values.items()}
    page = Template(files(__package__).joinpath("index.html").read_text(encoding="utf-8"))
    dtype = "q8" if rounded else "fp32"
    write_text(folder / "index.html", page.substitute(escaped, dtype=dtype, version=VERSION))


def native(engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
    """Return our model with greedy search."""
    return huggingface.searching(engine, beam=1, longest=trained.longest)


def usage(settings: Config, decoding: DecodingConfig) -> str:
    """Return code in JavaScript that translates a sentence."""
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


def usage_of_page(settings: Config, decoding: DecodingConfig) -> str:
    """Say how to open the page."""
    return (
        "Put the folder on any server of static files, and open it in a browser. On this machine:\n\n"
        "```sh\n"
        "python3 -m http.server --bind 127.0.0.1 --directory . 8000\n"
        "```\n\n"
        "Then open http://127.0.0.1:8000. The page translates in the browser and sends no text anywhere. It loads "
        f"transformers.js {VERSION} from jsdelivr, unless these files are in the folder, too: `transformers.min.js` of "
        "the npm package @huggingface/transformers, and `ort-wasm-simd-threaded.asyncify.mjs` and `.wasm` of the "
        "onnxruntime-web that it depends on.\n"
    )


def write(folder: Path, model: TranslationModel, tokenizer: Tokenizer, longest: int, quantization: str) -> None:
    """Write all files but the page, for translations of at most `longest` word pieces."""
    most = positions(model.config)
    (folder / GRAPHS).mkdir()
    write_graphs(folder / GRAPHS, model, most)
    if quantization == "int8":
        quantize(folder / GRAPHS)
    write_json(folder / "config.json", huggingface.settings_json(model.config, tokenizer))
    search = huggingface.generation(1, longest)
    write_json(folder / "generation_config.json", {**huggingface.SPECIAL, "forced_eos_token_id": EOS, **search})
    as_fast_tokenizer(tokenizer.contents[0]).save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", tokenizer_config(tokenizer.contents[0], most))


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


ONNX = Target("transformers.js", partial(check, "onnx"), write_export, Reader, usage, NOTE, native)
PAGE = Target("transformers.js", partial(check, "web"), write_page, Reader, usage_of_page, NOTE, native)
