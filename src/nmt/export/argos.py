"""Export to a package for Argos Translate and LibreTranslate, which translate offline with CTranslate2."""

import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.config.decoding import DecodingConfig
from nmt.config.tree import Config
from nmt.export import ctranslate2
from nmt.export.sentence_splitter import write_sentence_splitter
from nmt.export.target import (
    EngineReader,
    Target,
    TrainedModel,
    check_expressible,
    example_sentence,
    refuse_tokenizer,
)
from nmt.text.language import language_name
from nmt.text.tokenizer import JOINT_FILE, Tokenizer

VERSION = "1.0"
"""The version of the package. The client prefers the highest one of a pair of languages."""
CLIENT_VERSION = "1.11"
"""The oldest version of the client that reads the sentence splitter."""
MODEL, TOKENIZER, SPLITTER = "model", "sentencepiece.model", "minisbd/splitter.onnx"
"""Names in the package that the client expects."""
NOTE = (
    "the client searches with beam 4 and a length penalty of its own, length^0.2. It computes in int8 where that is "
    "faster. It replaces an unknown word by the source word with the most attention, turns `_` into a space, and joins "
    "the sentences of a paragraph. The splitter in the package finds sentences by punctuation and capital letters, so "
    "nothing is downloaded"
)


def check(settings: Config, tokenizer: Tokenizer) -> None:
    """Refuse what CTranslate2 or the client cannot express."""
    check_expressible("argos", settings.model, ctranslate2.expressible(settings.model))
    if len(tokenizer.files) > 1:
        raise refuse_tokenizer("argos", "tokenizer.joint=false", "one SentencePiece model for both languages")
    if tokenizer.source_tags:
        raise refuse_tokenizer("argos", "tags before sentences", "a vocabulary without them")


def write(folder: Path, trained: TrainedModel) -> None:
    """Write the package, one file that the client installs."""
    data = trained.settings.data
    name = package_name(data.source_lang, data.target_lang)
    with TemporaryDirectory() as temporary:
        package = Path(temporary)
        _write_package(package, trained)
        with zipfile.ZipFile(folder / f"{name}.argosmodel", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(package.rglob("*")):
                if path.is_file():
                    archive.write(path, f"{name}/{path.relative_to(package).as_posix()}")


def _write_package(package: Path, trained: TrainedModel) -> None:
    """Write the files of the package into an empty folder."""
    data, model = trained.settings.data, trained.settings.model
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
    for name in (MODEL, "minisbd"):
        (package / name).mkdir()
    ctranslate2.write_model(package / MODEL, model, trained.checkpoint.weights, trained.tokenizer, trained.quantization)
    (package / TOKENIZER).write_bytes(trained.tokenizer.contents[0])
    write_sentence_splitter(package / SPLITTER)
    title = f"# {trained.settings.name}: {metadata['from_name']} to {metadata['to_name']}"
    text = f"{title}\n\nTrained and exported with nmt.\n\nSearch: {NOTE}.\n"
    (package / "README.md").write_text(text, encoding="utf-8")


def read(folder: Path, trained: TrainedModel) -> EngineReader:
    """Load the model of a package into CTranslate2, which the client translates with."""
    (file,) = folder.glob("*.argosmodel")
    with TemporaryDirectory() as temporary, zipfile.ZipFile(file) as archive:
        archive.extractall(temporary)
        package = Path(temporary) / file.stem
        (package / TOKENIZER).rename(package / MODEL / JOINT_FILE)
        return ctranslate2.read_export(package / MODEL, trained)


def usage(settings: Config, decoding: DecodingConfig) -> str:
    """Say how to install the package."""
    source, target = settings.data.source_lang, settings.data.target_lang
    return (
        "Install it in LibreTranslate or Argos Translate, or in Python (`pip install argostranslate`):\n\n"
        "```python\n"
        "from argostranslate import package, translate\n"
        f'package.install_from_path("{package_name(source, target)}.argosmodel")\n'
        f'print(translate.translate("{example_sentence(settings.data)}", "{source}", "{target}"))\n'
        "```\n"
    )


def package_name(source: str, target: str) -> str:
    """Return the name of the package, which is also its folder in the client's data."""
    return f"translate-{source}_{target}-{VERSION.replace('.', '_')}"


TARGET = Target("argostranslate", check, write, read, usage, NOTE)
