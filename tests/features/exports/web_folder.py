"""Web exports for tests, and their scripts under Node."""

from pathlib import Path
from typing import Any

from nmt.config.saved import to_yaml
from nmt.config.schema import Config, DecodingConfig
from nmt.features.exports.exporter import TrainedModel
from nmt.features.exports.tokenizer_json import tokenizer_json
from nmt.features.exports.web.exporter import FACTS, MODEL, TOKENIZER, WebExporter, facts
from nmt.features.exports.web.files import PACKAGE, RUNTIME, write_page
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoints import Checkpoints, load
from nmt.storage.files import write_json
from nmt.text.tokenizer import Tokenizer
from tests.features.exports import clients
from tests.features.exports.clients import NODE_MODULES, needs_package

CLIENT = Path(__file__).with_name("web_client.mjs")
needs_runtime = needs_package(PACKAGE)
DECODING = DecodingConfig(beam=4, alpha=0.6, extra_length=12)


def trained(tokenizer: Tokenizer, folder: Path, model: TranslationModel, quantization: str) -> TrainedModel:
    """Return a model as the export finds it, saved in a folder."""
    settings = Config(name="small", model=model.config)
    saved = Checkpoints(folder).save(
        1, weights=model.state_dict(), trainer={}, tokenizer_files=tokenizer.files,
        config_text=to_yaml(settings), valid={},
    )  # fmt: skip
    runtime = str(Path(NODE_MODULES) / PACKAGE) if NODE_MODULES else ""
    return TrainedModel(load(saved), settings, tokenizer, DECODING, quantization, runtime)


def write_export(tmp_path: Path, tokenizer: Tokenizer, model: TranslationModel, quantization: str = "float32") -> Path:
    """Write a web export of a model."""
    (tmp_path / "run").mkdir()
    folder = tmp_path / "web"
    folder.mkdir()
    WebExporter().write(folder, trained(tokenizer, tmp_path / "run", model, quantization))
    return folder


def write_scripts(tmp_path: Path, tokenizer: Tokenizer, model: TranslationModel) -> Path:
    """Write a web export without graphs, and with stand-ins for onnxruntime-web."""
    folder = tmp_path / "web"
    (folder / MODEL).mkdir(parents=True)
    (tmp_path / "run").mkdir()
    described = facts(trained(tokenizer, tmp_path / "run", model, "float32"), 64)
    write_json(folder / TOKENIZER, tokenizer_json(tokenizer.contents[0]))
    write_json(folder / FACTS, described)
    write_page(folder, stand_ins(tmp_path))
    return folder


def stand_ins(tmp_path: Path) -> dict[str, Path]:
    """Return small files in the places of those of onnxruntime-web."""
    dist = tmp_path / PACKAGE / "dist"
    dist.mkdir(parents=True)
    for name in RUNTIME.values():
        (dist / name).write_text(f"// {name}\n")
    return {name: dist / original for name, original in RUNTIME.items()}


def ask(folder: Path, kind: str, **question: object) -> Any:
    """Return what a script of the page answers under Node."""
    (folder.parent / "package.json").write_text('{"type": "module"}')
    return clients.ask(CLIENT, [folder], {"kind": kind, **question}, folder)
