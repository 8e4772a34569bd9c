"""Export to ONNX, in the layout that transformers.js and optimum read, and to a web page that runs it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import torch

from nmt.export import huggingface
from nmt.export.onnx_graphs import DECODER, ENCODER, PAST, PRESENT, QUANTIZED, quantize, write_graphs
from nmt.export.target import ALL_LAYERS, ANY, Target, TrainedModel
from nmt.model.build import build_model
from nmt.packages import import_optional
from nmt.storage.files import write_json, write_text
from nmt.text.sentencepiece_model import CONTROL, NORMAL, UNKNOWN, Piece, read_pieces
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK

VERSION = "4.3.1"
"""The version of transformers.js that the page loads, which the tests use."""
GRAPHS = "onnx"
"""The folder of the graphs."""
NOTE = (
    "transformers.js searches greedily (it takes the first token of each beam if `num_beams` is larger), and the "
    f"export was compared with the model that way. Unknown words are left out. {huggingface.SPECIAL_TEXT}"
)


class OnnxRuntime:
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
        self.cache = {each.name: each.shape for each in self.decoder.get_inputs() if each.name.startswith(PAST)}

    def translate(self, lines: Sequence[str]) -> list[str]:
        """See `Program.translate`."""
        found = []
        for line in lines:
            state, tokens = self._begin(line), [BOS]
            while tokens[-1] != EOS and len(tokens) < self.longest:
                tokens.append(int(self._advance(state, tokens[-1:], use_cache=len(tokens) > 1)[-1].argmax()))
            found.append(self.tokenizer.decode(tokens[1:]))
        return found

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """See `Program.score`."""
        found = []
        for line, translation in zip(lines, translations, strict=True):
            labels = [*self.tokenizer.encode(translation).ids[:-1][: self.longest - 1], EOS]
            scores = self._advance(self._begin(line), [BOS, *labels[:-1]], use_cache=False)
            found.append(float(torch.from_numpy(scores).log_softmax(-1)[range(len(labels)), labels].sum()))
        return found

    def _begin(self, line: str) -> dict[str, Any]:
        """Return what the decoder needs of a source sentence, and a cache of length 0, as clients do."""
        ids = np.array([self.tokenizer.encode(line).ids])
        mask = np.ones_like(ids)
        (states,) = self.encoder.run(None, {"input_ids": ids, "attention_mask": mask})
        empty = {name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in self.cache.items()}
        return {"encoder_hidden_states": states, "encoder_attention_mask": mask, **empty}

    def _advance(self, state: dict[str, Any], tokens: list[int], *, use_cache: bool) -> Any:
        """Return the scores (L, V) after each token; the state gets the cache for the next step."""
        feeds = {**state, "input_ids": np.array([tokens]), "use_cache_branch": np.array([use_cache])}
        names = [name.replace(PAST, PRESENT) for name in self.cache]
        scores, *present = self.decoder.run(["logits", *names], feeds)
        state.update(zip(self.cache, present, strict=True))
        return scores[0]


def write(folder: Path, trained: TrainedModel) -> None:
    """Write graphs for encoder and decoder, and the tokenizer; int8 weights are written beside those in float32."""
    tokenizer = trained.tokenizer
    model = build_model(trained.settings.model, tokenizer.source_size, tokenizer.target_size).eval()
    model.load_state_dict(trained.weights)
    (folder / GRAPHS).mkdir()
    write_graphs(folder / GRAPHS, model, trained.positions)
    if trained.quantization == "int8":
        quantize(folder / GRAPHS)
    write_json(folder / "config.json", huggingface.model_settings(trained))
    write_json(folder / "generation_config.json", huggingface.generation_settings(1, trained.longest))
    fast_tokenizer(tokenizer.contents[0]).save(str(folder / "tokenizer.json"))
    pieces = tokenizer.vocabularies[0]
    tokenizer_settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": pieces[UNK],
        "eos_token": pieces[EOS],
        "pad_token": pieces[PAD],
        "clean_up_tokenization_spaces": False,
        "model_max_length": trained.positions,
    }
    write_json(folder / "tokenizer_config.json", tokenizer_settings)


def write_page(folder: Path, trained: TrainedModel) -> None:
    """Write the same folder with a page that translates in the browser; int8 weights without those in float32."""
    write(folder, trained)
    rounded = trained.quantization == "int8"
    if rounded:
        for name in (ENCODER, DECODER):
            (folder / GRAPHS / f"{name}.onnx").unlink()
    source, target = (each.replace("_", "-") for each in trained.settings.data.languages)  # as browsers do
    values = {"name": trained.settings.name, "source": source, "target": target}
    escaped = {key: escape(value) for key, value in values.items()}
    page = Template(files(__package__).joinpath("index.html").read_text(encoding="utf-8"))
    dtype = "q8" if rounded else "fp32"
    write_text(folder / "index.html", page.substitute(escaped, dtype=dtype, version=VERSION))


def fast_tokenizer(model: bytes) -> Any:
    """Return Hugging Face's tokenizer for a SentencePiece model of BPE that does not normalise its text."""
    library = import_optional("tokenizers")
    normalizers, decoders = library.normalizers, library.decoders
    pieces = read_pieces(model)
    end, unknown = pieces[EOS].text, pieces[UNK].text
    ids = {piece.text: index for index, piece in enumerate(pieces)}
    found = library.Tokenizer(library.models.BPE(ids, list(_merges(pieces)), unk_token=unknown, fuse_unk=True))
    found.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)])
    found.decoder = decoders.Sequence([decoders.Replace(SPACE_MARK, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    found.post_processor = library.processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, EOS)])
    special = [piece.text for piece in pieces if piece.kind in (CONTROL, UNKNOWN)]
    found.add_special_tokens([library.AddedToken(text, normalized=False) for text in special])
    return found


def _merges(pieces: Sequence[Piece]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of pieces that make another piece, those with the best score first, as SentencePiece merges."""
    normal = {piece.text: piece.score for piece in pieces if piece.kind == NORMAL}
    for text in sorted(normal, key=lambda each: -normal[each]):
        for cut in range(1, len(text)):
            if text[:cut] in normal and text[cut:] in normal:
                yield text[:cut], text[cut:]


def usage(trained: TrainedModel) -> str:
    """Return code in JavaScript that translates a sentence."""
    return (
        "In a browser or under Node, with this folder as `models/own`. With float32 weights, write `fp32` for "
        "`q8`:\n\n"
        "```js\n"
        'import { AutoModelForSeq2SeqLM, AutoTokenizer, env } from "@huggingface/transformers";\n'
        "env.allowRemoteModels = false;\n"
        'env.localModelPath = "models";\n'
        'const tokenizer = await AutoTokenizer.from_pretrained("own");\n'
        'const model = await AutoModelForSeq2SeqLM.from_pretrained("own", { dtype: "q8" });\n'
        f'const found = await model.generate(tokenizer("{trained.example}"));\n'
        "console.log(tokenizer.batch_decode(found, { skip_special_tokens: true })[0]);\n"
        "```\n"
    )


def usage_of_page(trained: TrainedModel) -> str:
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


ONNX = Target(
    library="transformers.js",
    expresses={**ALL_LAYERS, "positions": ANY},
    vocabulary="plain BPE",
    search="greedy",
    write=write,
    read=OnnxRuntime,
    usage=usage,
    note=NOTE,
)
PAGE = replace(ONNX, write=write_page, usage=usage_of_page)
