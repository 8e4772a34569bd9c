"""Export to a package for Argos Translate and LibreTranslate, which translate offline with CTranslate2."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.export import ctranslate2
from nmt.export.onnx_graphs import trace
from nmt.export.target import TrainedModel
from nmt.packages import import_optional
from nmt.text.language import language_name
from nmt.text.tokenizer import JOINT_FILE

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
UNKNOWN, SPACE, STOP, MARK, QUOTE, WIDE, CAPITAL, DIGIT = range(1, 9)
"""Classes of characters for the splitter; 0 is padding."""
CHARACTERS = {SPACE: " ", STOP: ".", MARK: "!?…", QUOTE: "\"'“”‘’„«»()[]¿¡", WIDE: "。！？"}


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
        ctranslate2.write(Path(model), trained)
        for part in Path(model).iterdir():
            package.write(part, f"{name}/{TOKENIZER if part.name == JOINT_FILE else f'{MODEL}/{part.name}'}")
        write_sentence_splitter(Path(model) / "splitter.onnx")
        package.write(Path(model) / "splitter.onnx", f"{name}/{SPLITTER}")
        package.writestr(f"{name}/metadata.json", json.dumps(metadata, indent=2, ensure_ascii=False))
        package.writestr(f"{name}/README.md", text)


class SentenceSplitter(nn.Module):
    """Rules for MiniSBD, which replaces characters by ids and takes the class of each: 2 is the end of a sentence."""

    def forward(self, units: Tensor, features: Tensor) -> Tensor:
        """Return scores of three classes (B, L, 3), given ids (B, L) and whether each is a capital or a digit."""
        kinds = torch.where(features[..., 0] > 0, CAPITAL, torch.where(features[..., 1] > 0, DIGIT, units))
        padded = F.pad(kinds, (2, 2))
        second_last, last, this, following, second = (
            padded[:, 2 + offset : padded.shape[1] - 2 + offset] for offset in range(-2, 3)
        )
        sentence_follows = (following == SPACE) & _any_of(second, CAPITAL, QUOTE, DIGIT)
        # before the point of an abbreviation such as "Dr.", "z. B." or "U.S.", or of an ordinal number
        short = _any_of(last, SPACE, CAPITAL, DIGIT, STOP) | _any_of(second_last, SPACE, CAPITAL, DIGIT, STOP)
        closed = (this == QUOTE) & _any_of(last, STOP, MARK)
        ends = (this == WIDE) | sentence_follows & (closed | (this == MARK) | (this == STOP) & ~short)
        return ends[..., None] * torch.tensor([0.0, 0.0, 1.0])


def _any_of(characters: Tensor, *kinds: int) -> Tensor:
    return (characters[..., None] == torch.tensor(kinds)).any(-1)


def write_sentence_splitter(file: Path) -> None:
    """Write the rules as the ONNX graph that MiniSBD runs, with the settings that it reads from it."""
    text, example = {0: "B", 1: "L"}, (torch.zeros(2, 9, dtype=torch.int64), torch.zeros(2, 9, 2))
    trace(SentenceSplitter(), example, file, {"units": text, "features": text}, {"scores": text})
    onnx = import_optional("onnx")
    model = onnx.load(file)
    ids = {"<PAD>": 0, "<UNK>": UNKNOWN} | {each: kind for kind, found in CHARACTERS.items() for each in found}
    settings = {
        "lang_code": "any",
        "config": json.dumps({"feat_funcs": ["capitalized", "numeric"], "batch_size": 16}),
        "vocab": json.dumps({"_unit2id": ids}),
    }
    onnx.helper.set_model_props(model, settings)
    onnx.save(model, file)


def read(folder: Path, trained: TrainedModel) -> ctranslate2.CTranslate2:
    """Load the model of a package into CTranslate2, which the client translates with."""
    (file,) = folder.glob("*.argosmodel")
    with TemporaryDirectory() as temporary, zipfile.ZipFile(file) as archive:
        archive.extractall(temporary)
        package = Path(temporary) / file.stem
        (package / TOKENIZER).rename(package / MODEL / JOINT_FILE)
        return ctranslate2.CTranslate2(package / MODEL, trained)


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
    ctranslate2.TARGET, library="argostranslate", vocabulary="plain", write=write, read=read, usage=usage, note=NOTE
)
