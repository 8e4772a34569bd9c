"""Export to a package for Argos Translate and LibreTranslate, which translate offline with CTranslate2."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.export import ctranslate2
from nmt.export.target import TrainedModel
from nmt.text.language import language_name
from nmt.text.tokenizer import JOINT_FILE

VERSION = "1.0"
"""The version of the package. The client prefers the highest one of a pair of languages."""
CLIENT_VERSION = "1.9"
"""The oldest version of the client."""
MODEL, TOKENIZER = "model", "sentencepiece.model"
"""Names in the package that the client expects."""
NOTE = (
    "the client searches with beam 4 and a length penalty of its own, length^0.2. It computes in int8 where that is "
    "faster. It replaces an unknown word by the source word with the most attention, turns `_` into a space, and finds "
    "sentences with a splitter that it downloads once"
)


def write(folder: Path, trained: TrainedModel) -> None:
    """Write the package, one file that the client installs."""
    data, name = trained.settings.data, _package_name(trained)
    source, target = language_name(data.source_lang), language_name(data.target_lang)
    metadata = {
        "package_version": VERSION,
        "argos_version": CLIENT_VERSION,
        "from_code": data.source_lang,
        "from_name": source,
        "to_code": data.target_lang,
        "to_name": target,
        "target_prefix": "",
    }
    text = f"# {trained.settings.name}: {source} to {target}\n\nTrained and exported with nmt.\n\nSearch: {NOTE}.\n"
    with (
        TemporaryDirectory() as model,
        zipfile.ZipFile(folder / f"{name}.argosmodel", "w", zipfile.ZIP_DEFLATED) as package,
    ):
        ctranslate2.write_model(Path(model), trained)
        package.writestr(f"{name}/metadata.json", json.dumps(metadata, indent=2, ensure_ascii=False))
        package.writestr(f"{name}/README.md", text)
        package.writestr(f"{name}/{TOKENIZER}", trained.tokenizer.contents[0])
        for part in Path(model).iterdir():
            package.write(part, f"{name}/{MODEL}/{part.name}")


def read(folder: Path, trained: TrainedModel) -> ctranslate2.Reader:
    """Load the model of a package into CTranslate2, which the client translates with."""
    (file,) = folder.glob("*.argosmodel")
    with TemporaryDirectory() as temporary, zipfile.ZipFile(file) as archive:
        archive.extractall(temporary)
        package = Path(temporary) / file.stem
        (package / TOKENIZER).rename(package / MODEL / JOINT_FILE)
        return ctranslate2.Reader(package / MODEL, trained)


def usage(trained: TrainedModel) -> str:
    """Say how to install the package."""
    data = trained.settings.data
    return (
        "Install it in LibreTranslate or Argos Translate, or in Python (`pip install argostranslate`):\n\n"
        "```python\n"
        "from argostranslate import package, translate\n"
        f'package.install_from_path("{_package_name(trained)}.argosmodel")\n'
        f'print(translate.translate("{trained.example}", "{data.source_lang}", "{data.target_lang}"))\n'
        "```\n"
    )


def _package_name(trained: TrainedModel) -> str:
    """Return the name of the package, which is also its folder in the client's data."""
    data = trained.settings.data
    return f"translate-{data.source_lang}_{data.target_lang}-{VERSION.replace('.', '_')}"


TARGET = replace(
    ctranslate2.TARGET,
    name="argos",
    library="argostranslate",
    vocabulary="plain",
    write=write,
    read=read,
    usage=usage,
    note=NOTE,
)
