"""The model card has a header that programs read, the facts of the model, and no private paths."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.config.schema import Config, DataConfig, DecodingConfig, ModelConfig, TokenizerConfig, TrainingConfig
from nmt.data.filter_counts import FilterCount
from nmt.features.exports.card import CardFacts, card
from nmt.features.exports.record import ExportRecord, VerificationRecord
from nmt.features.exports.registry import EXPORTERS
from nmt.runs.checkpoint_record import CheckpointRecord


def facts(data: DataConfig, **changes: Any) -> CardFacts:
    record = ExportRecord(
        nmt="1", target="ctranslate2", quantization="float32", languages=("en", "de"), positions=9,
        checkpoint=CheckpointRecord("averaged", 7, "0"), verified=VerificationRecord(4, 4, 0.0, None, "4 of 4"),
    )  # fmt: skip
    made = CardFacts(
        exporter=EXPORTERS["ctranslate2"], trained=replace(Config(), data=data), vocabularies=(60, 60), record=record,
        filters={}, evaluations=[], decoding=DecodingConfig(), size="0.1 MB (model.safetensors 0.1 MB)", licence="",
    )  # fmt: skip
    return replace(made, **changes)


def header(text: str) -> dict[str, Any]:
    _, front, _ = text.split("---\n", 2)
    read = yaml.safe_load(front)
    assert isinstance(read, dict)
    return read


BACK = {"source_lang": "de", "target_lang": "fr", "train": ["b.de", "b.fr"], "tag": "<fr>"}
MIXTURE: dict[str, Any] = {"source": "files", "train": ["a.en", "a.de"], "tag": "<de>", "mixture": {"back": BACK}}


@pytest.mark.parametrize("source", ["no", "on", "y", "en", "1e3"])
def test_language_codes_that_yaml_would_misread_are_quoted(source: str) -> None:
    made = card(facts(DataConfig(source_lang=source, target_lang="de"), licence="no: licence #1"))
    assert header(made)["language"] == [source, "de"]
    assert header(made)["license"] == "no: licence #1"


def test_the_header_names_a_hub_dataset() -> None:
    made = card(facts(DataConfig()))
    assert header(made)["datasets"] == ["wmt/wmt14"]
    assert "- wmt14_en_de: wmt/wmt14 (de-en)" in made


def test_local_folders_are_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    for folder in (str(tmp_path / "private"), "owner/name", "../raw/wmt14", "~/wmt14"):
        made = card(facts(DataConfig(hub_dataset=folder)))
        assert "datasets" not in header(made)
        assert folder not in made


def test_local_files_are_published_without_their_folders() -> None:
    made = card(facts(DataConfig(source="files", train=["/home/me/secret/train.en", "../mine/train.de"])))
    assert "the files train.en, train.de" in made
    assert "secret" not in made
    assert "mine" not in made


@pytest.mark.parametrize(
    ("source", "target", "train", "expected"),
    [
        ("demo", "de", [], "- text: the embedded demo grammar"),
        ("trees", "trees", ["/home/me/wsj:02-21"], "- text: the source `trees` wsj:02-21"),
    ],
)
def test_only_text_of_the_demo_is_called_so(source: str, target: str, train: list[str], expected: str) -> None:
    data = DataConfig(corpus="text", source=source, target_lang=target, train=train)
    trained = Config(
        data=data, tokenizer=TokenizerConfig(joint=False), model=ModelConfig(tie_embeddings=False),
        training=TrainingConfig(valid_sentences=0),
    )  # fmt: skip
    assert expected in card(replace(facts(DataConfig()), trained=trained)).splitlines()


def test_each_corpus_of_a_mixture_is_described_with_its_direction_tag_and_pairs() -> None:
    counts = [FilterCount("read", "", 0, 50, 1.0), FilterCount("empty", "", 8, 42, 0.84)]
    made = card(facts(DataConfig(**MIXTURE), filters={"back": counts}))
    assert header(made)["language"] == ["en", "de", "fr"]
    assert "from en to de and de to fr," in made
    main, back = made.partition("## Training data\n")[2].partition("## Recipe")[0].split("\n- back")
    assert main.strip().startswith("- main, en to de, tag `<de>`: the files a.en, a.de\n  - filters: ")
    assert back.startswith(", de to fr, tag `<fr>`: the files b.de, b.fr\n")
    assert "pairs read: 50; dropped: 8 by empty; trained on: 42" in back
    assert "pairs read" not in main


@pytest.mark.parametrize("target", [target for target in EXPORTERS if target not in ("argos", "onnx", "web")])
def test_the_example_begins_with_a_tag_if_the_model_needs_one(target: str) -> None:
    exporter = EXPORTERS[target]
    made = card(facts(DataConfig(**MIXTURE), exporter=exporter))
    assert "<de> A man sleeps." in made
    assert "Each sentence needs one of these tags before it" in made
    assert "- `<fr>`: de to fr, as in the corpus back\n" in made
    untagged = card(facts(DataConfig(**MIXTURE | {"tag": ""}), exporter=exporter))
    assert "<de>" not in untagged
    assert "Each sentence may have one of these tags before it" in untagged
    assert "tag" not in card(facts(DataConfig(), exporter=exporter)).partition("## Use")[2]


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({"adam_beta2": 0.95}, "optimizer adam (0.9, 0.95)\n"),
        ({"optimizer": "muon", "weight_decay": 0.1}, "optimizer muon with weight decay 0.1\n"),
    ],
    ids=str,
)
def test_the_recipe_names_the_optimizer(training: dict[str, Any], expected: str) -> None:
    trained = replace(Config(), training=TrainingConfig(**training))
    assert f"label smoothing 0.1, {expected}" in card(facts(DataConfig(), trained=trained))
