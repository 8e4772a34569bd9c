"""Programs translate and score with our exports as our own model does; what a format cannot express is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config.model import ModelConfig
from nmt.config.registry import CHOICES, load
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.export.target import Target, TrainedModel
from nmt.text.tokenizer import Tokenizer
from tests.export.models import make_plain_tokenizer, make_trained, native, target, written
from tests.unit.small_models import LINES, log_probabilities, make_tokenizer

MODERN: dict[str, Any] = {"norm_placement": "pre", "norm": "rms", "activation": "swiglu", "positions": "rotary"}
LEARNED: dict[str, Any] = {"positions": "learned", "max_positions": 512, "output_bias": True}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("ctranslate2", {}),
    ("ctranslate2", MODERN | {"kv_heads": 2}),
    ("ctranslate2", LEARNED | {"activation": "swish", "norm": "rms"}),
    ("ctranslate2", {"tie_embeddings": False, "activation": "gelu", "d_k": 16, "d_v": 16, "encoder_layers": 3}),
    ("argos", {"norm_placement": "pre", "positions": "rotary"}),
    ("huggingface", {}),
    ("huggingface", {"tie_embeddings": False, "activation": "gelu"}),
    ("huggingface", {"activation": "swish", "encoder_layers": 3, "heads": 1, "output_bias": True}),
    ("onnx", {}),
    ("onnx", MODERN | {"kv_heads": 2, "encoder_layers": 3}),
    ("onnx", LEARNED | {"activation": "gelu"}),
    ("onnx", {"positions": "alibi"}),
    ("onnx", {"positions": "relative"}),
    ("web", {"norm_placement": "pre"}),
]
CTRANSLATE2 = {"layer", "rms", "relu", "gelu", "swish", "swiglu", "sinusoidal", "learned", "rotary", "transformer"}
EXPRESSED = {
    "argos": CTRANSLATE2,
    "ctranslate2": CTRANSLATE2,
    "onnx": {*CTRANSLATE2, *CHOICES["model.positions"]},
    "huggingface": {"layer", "relu", "gelu", "swish", "sinusoidal", "transformer"},
}


def refusal(name: str, model: ModelConfig, tokenizer: Tokenizer | None = None) -> str:
    """Return why a target refuses a model, or nothing if it takes it."""
    chosen: Target = load("export.target", name)
    try:
        chosen.check(name, TrainedModel(Config(model=model), {}, tokenizer or make_plain_tokenizer()))
    except UserError as error:
        return str(error).removeprefix(f"export.target={name} cannot express ")
    return ""


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_the_program_translates_and_scores_as_our_model(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    chosen = target(name)
    model, ours = make_trained(name, steps=150, **options)
    program = chosen.read(written(tmp_path, name, model), model)
    expected = [each.text for each in native(name, ours, model).translate(LINES)]
    assert program.translate(LINES) == expected
    tolerance = 0.05 if ours.config.norm == "rms" else 1e-3  # programs differ in whether PAD and BOS are possible
    for source, text, score in zip(LINES, LINES[::-1], program.score(LINES, LINES[::-1]), strict=True):
        (ids,), (labels,) = model.tokenizer.encode_source([source]), model.tokenizer.encode_target([text])
        assert score == pytest.approx(log_probabilities(ours, ids, labels).sum().item(), rel=tolerance, abs=1e-3)


@pytest.mark.parametrize("name", ["argos", "ctranslate2", "onnx", "web"])
def test_int8_is_smaller_and_nearly_the_same(tmp_path: Path, name: str) -> None:
    sizes, scores, chosen = {}, {}, target(name)
    for quantization in ("float32", "int8"):
        model, _ = make_trained(name, quantization, d_model=128, d_ff=512)
        folder = written(tmp_path / quantization, name, model)
        sizes[quantization] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        scores[quantization] = chosen.read(folder, model).score(LINES, LINES[::-1])
    if name != "onnx":  # which has the weights in float32, too
        assert sizes["int8"] < 0.7 * sizes["float32"]  # the positions stay in float32
    gaps = [abs(one - other) for one, other in zip(*scores.values(), strict=True)]
    assert 0 < sum(gaps) < 0.25 * -sum(scores["float32"])


@pytest.mark.parametrize("name", EXPRESSED)
def test_choices_that_a_format_cannot_express_are_refused_by_name(name: str) -> None:
    for setting in (each for each in CHOICES if each.startswith("model.")):
        for value in CHOICES[setting]:
            changes: dict[str, Any] = {setting.partition(".")[2]: value}
            said = refusal(name, replace(ModelConfig(), **changes))
            assert said.partition(",")[0] == ("" if value in EXPRESSED[name] else f"{setting}={value}")


@pytest.mark.parametrize(
    ("name", "changes", "tokenizer", "what"),
    [
        ("huggingface", {"norm_placement": "pre"}, None, "model.norm_placement=pre, only post"),
        ("huggingface", {"kv_heads": 2}, None, "model.kv_heads=2, only 8"),
        ("ctranslate2", {"d_k": 16}, None, "model.d_v=64, only 16"),
        ("onnx", {"d_k": 16, "d_v": 16}, None, "model.d_k=16, only 64"),
        ("argos", {}, make_tokenizer(joint=False), "tokenizer.joint=false"),
        ("argos", {}, make_tokenizer(tags=["<de>"]), "tokenizer.joint=false, or tags before sentences"),
        ("web", {}, make_plain_tokenizer("unigram"), "a tokenizer that is not BPE"),
    ],
)
def test_values_and_tokenizers_that_a_format_cannot_express_are_refused(
    name: str, changes: dict[str, Any], tokenizer: Tokenizer | None, what: str
) -> None:
    assert refusal(name, replace(ModelConfig(), **changes), tokenizer).startswith(what)
