"""A run with one checkpoint and prepared test data, which no training has made."""

import io
from pathlib import Path

import pytest
import sentencepiece
import torch

from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.saved import to_yaml
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.model.build import build_model
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, load
from nmt.runs.checkpoints import Checkpoints
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import Tokenizer

SOURCES = ["the small cat sees a dog", "", "a dog", "it is a very small dog", "cats see dogs and a cat"]
REFERENCES = ["die Katze sieht einen Hund", "", "ein Hund", "es ist ein sehr kleiner Hund", "Katzen sehen Hunde"]
LINES = [line for line in SOURCES if line]
Run = tuple[Config, list[str]]


@pytest.fixture(scope="module")
def content() -> bytes:
    return trained_on(SOURCES + REFERENCES)


def trained_on(corpus: list[str]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus * 5), model_writer=model, model_type="bpe", vocab_size=60,
        minloglevel=2, unk_id=UNK, pad_id=PAD, bos_id=BOS, eos_id=EOS,
    )  # fmt: skip
    return model.getvalue()


@pytest.fixture
def run(tmp_path: Path, content: bytes) -> Run:
    """Make a run with one checkpoint and prepared test data; return its settings and the overrides that name it."""
    config = Config(
        name="tiny",
        checkpoint="last",
        data=DataConfig(corpus="tiny"),
        tokenizer=TokenizerConfig(vocab_size=60),
        model=ModelConfig(layers=1, d_model=16, d_ff=16, heads=2, positions="learned", max_positions=257),
        decoding=DecodingConfig(extra_length=4),
        runtime=RuntimeConfig(device="cpu", precision="fp32", threads=1),
        paths=PathsConfig(data=str(tmp_path / "data"), outputs=str(tmp_path / "outputs")),
    )
    config.data_folder.mkdir(parents=True)
    write_split(config, "test", SOURCES, REFERENCES)
    tokenizer = Tokenizer(content)
    tokenizer.save(config.data_folder)
    save_checkpoint(config, tokenizer)
    (config.run_folder / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    overrides = [
        f"paths.data={config.paths.data}", f"paths.outputs={config.paths.outputs}", "name=tiny", "data.corpus=tiny",
        "checkpoint=last", "decoding.extra_length=4", "runtime.device=cpu", "runtime.precision=fp32",
        "runtime.threads=1",
    ]  # fmt: skip
    return config, overrides


def save_checkpoint(config: Config, tokenizer: Tokenizer) -> None:
    model = build_model(config.model, tokenizer.source_size, tokenizer.target_size)
    torch.nn.init.normal_(model.projection)
    Checkpoints(config.run_folder).save(
        Checkpoint(
            meta=CheckpointMeta(step=7),
            weights=model.state_dict(),
            trainer={},
            tokenizer_files=tokenizer.files,
            config_text=to_yaml(config),
        )
    )


def write_split(config: Config, split: str, sources: list[str], references: list[str]) -> None:
    for language, lines in (("en", sources), ("de", references)):
        path = config.data_folder / f"{split}.{language}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def translator_of(config: Config) -> TorchEngine:
    checkpoint = load(config.run_folder / "checkpoints" / "step-00000007")
    tokenizer = Tokenizer.load(checkpoint.path)
    model = build_model(config.model, tokenizer.source_size, tokenizer.target_size).eval()
    model.load_state_dict(checkpoint.weights)
    return TorchEngine([model], tokenizer, config.decoding, torch.device("cpu"))


def weights_path(config: Config) -> Path:
    return config.run_folder / "checkpoints" / "step-00000007" / "model.safetensors"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.en"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path
