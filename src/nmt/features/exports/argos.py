"""Export to a package for Argos Translate and LibreTranslate, which translate offline with CTranslate2."""

import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sentencepiece
import torch

from nmt.compute.packages import import_optional
from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.features.exports import ctranslate2
from nmt.features.exports.ctranslate2_engine import CTranslate2Engine
from nmt.features.exports.exporter import Client, TrainedModel, check_expressible, example_sentence
from nmt.features.exports.sentence_splitter import write_sentence_splitter
from nmt.text.language import language_name
from nmt.text.tokenizer import JOINT_FILE, SPACE_MARK, Tokenizer

VERSION = "1.0"
"""The version of the package. The client prefers the highest one of a pair of languages."""
CLIENT_VERSION = "1.11"
"""The oldest version of the client that reads the sentence splitter."""
MODEL, TOKENIZER, SPLITTER = "model", "sentencepiece.model", "minisbd/splitter.onnx"
"""Names in the package that the client expects."""
CLIENT_SEARCH = {"beam_size": 4, "length_penalty": 0.2, "replace_unknowns": True}
"""The arguments with which the client calls CTranslate2."""
CLIENT_COMPUTE_TYPE = "auto"
"""The client computes in the number format that is fastest on its machine: int8, even if the weights are float32."""


class ArgosExporter:
    """Writes one file, which the client installs."""

    library = "argostranslate"

    def check(self, config: ModelConfig) -> None:
        """See `Exporter.check`."""
        check_expressible("argos", config, ctranslate2.expressible(config))

    def positions(self, config: ModelConfig) -> int:
        """See `Exporter.positions`."""
        return ctranslate2.positions(config)

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """See `Exporter.write`."""
        _check_tokenizer(trained.tokenizer)
        data = trained.settings.data
        name = package_name(data.source_lang, data.target_lang)
        with TemporaryDirectory() as temporary:
            _write_package(Path(temporary), trained)
            _zip(Path(temporary), folder / f"{name}.argosmodel", name)

    def native_engine(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """See `Exporter.native_engine`; the package is compared with our search, and its client separately."""
        return engine

    def open(self, folder: Path, native: TorchEngine, lines: Sequence[str]) -> Engine:
        """See `Exporter.open`."""
        with TemporaryDirectory() as temporary:
            package = _unzip(folder, Path(temporary))
            shutil.copyfile(package / TOKENIZER, package / MODEL / JOINT_FILE)
            max_positions = ctranslate2.positions(native.models[0].config)
            threads = torch.get_num_threads()
            return CTranslate2Engine(
                package / MODEL, native.config, native.device, threads, max_positions=max_positions
            )

    def client(self, folder: Path) -> Client:
        """See `Exporter.client`."""
        return lambda lines: translate_as_client(folder, lines)

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """See `Exporter.usage`."""
        source, target = settings.data.source_lang, settings.data.target_lang
        return (
            "Install it in LibreTranslate or Argos Translate, or in Python (`pip install argostranslate`):\n\n"
            "```python\n"
            "from argostranslate import package, translate\n"
            f'package.install_from_path("{package_name(source, target)}.argosmodel")\n'
            f'print(translate.translate("{example_sentence(settings.data)}", "{source}", "{target}"))\n'
            "```\n"
        )

    def search_note(self, decoding: DecodingConfig) -> str:
        """See `Exporter.search_note`."""
        return (
            f"the client searches with beam {CLIENT_SEARCH['beam_size']} and its own length penalty, length^"
            f"{CLIENT_SEARCH['length_penalty']}, and not as nmt does with beam {decoding.beam} and alpha "
            f"{decoding.alpha:g}. It computes in int8 where that is faster. It replaces an unknown word by the source "
            "word with the most attention, turns `_` into a space, and joins the sentences of a paragraph. The "
            "splitter in the package finds sentences by punctuation and capital letters, so nothing is downloaded"
        )


def package_name(source: str, target: str) -> str:
    """Return the name of the package, which is also its folder in the client's data."""
    return f"translate-{source}_{target}-{VERSION.replace('.', '_')}"


def _check_tokenizer(tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that the client cannot use, in one line that names the setting."""
    if len(tokenizer.files) > 1:
        raise UserError(
            "export.target=argos cannot express tokenizer.joint=false, because a package has one SentencePiece "
            "model for both languages: choose another export.target, or train with tokenizer.joint=true"
        )
    if tokenizer.source_tags:
        raise UserError(
            "export.target=argos cannot express tags before sentences, because the client puts none there: "
            "choose another export.target, or train with a vocabulary without tags"
        )


def translate_as_client(folder: Path, lines: Sequence[str]) -> list[str]:
    """Translate lines, each of which is one sentence, with the package in a folder as its client does."""
    with TemporaryDirectory() as temporary:
        package = _unzip(folder, Path(temporary))
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(package / TOKENIZER))
        translator: Any = import_optional("ctranslate2").Translator(
            str(package / MODEL), intra_threads=torch.get_num_threads(), compute_type=CLIENT_COMPUTE_TYPE
        )
    tokenized = pieces.encode(list(lines), out_type=str)
    found = [translator.translate_batch([each], **CLIENT_SEARCH)[0] for each in tokenized]  # a call each, as the client
    texts = [pieces.decode_pieces(each.hypotheses[0]) for each in found]
    return [text.replace(SPACE_MARK, " ").replace("_", " ").removeprefix(" ") for text in texts]


def _write_package(package: Path, trained: TrainedModel) -> None:
    """Write the files of the package into an empty folder."""
    data = trained.settings.data
    metadata = {
        "package_version": VERSION,
        "argos_version": CLIENT_VERSION,
        "from_code": data.source_lang,
        "from_name": language_name(data.source_lang),
        "to_code": data.target_lang,
        "to_name": language_name(data.target_lang),
        "target_prefix": "",
    }
    (package / "metadata.json").write_text(json.dumps(metadata, indent=2, ensure_ascii=False), encoding="utf-8")
    (package / MODEL).mkdir()
    model, weights = trained.settings.model, trained.checkpoint.weights
    ctranslate2.write_model(package / MODEL, model, weights, trained.tokenizer, trained.quantization)
    (package / TOKENIZER).write_bytes(trained.tokenizer.contents[0])
    (package / SPLITTER).parent.mkdir()
    write_sentence_splitter(package / SPLITTER)
    note = ArgosExporter().search_note(trained.decoding)
    title = f"# {trained.settings.name}: {metadata['from_name']} to {metadata['to_name']}"
    text = f"{title}\n\nTrained and exported with nmt.\n\nSearch: {note}.\n"
    (package / "README.md").write_text(text, encoding="utf-8")


def _zip(package: Path, file: Path, root: str) -> None:
    """Zip a package, with all its files in the folder `root`."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file():
                archive.write(path, f"{root}/{path.relative_to(package).as_posix()}")


def _unzip(folder: Path, target: Path) -> Path:
    """Unzip the package in a folder, and return the folder of its files."""
    (file,) = folder.glob("*.argosmodel")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(target)
    return target / file.stem
