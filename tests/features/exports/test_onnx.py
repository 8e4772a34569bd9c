"""Exports to ONNX, run with onnxruntime and compared with our own model, tokenizer and greedy search."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.config.schema import Config, DecodingConfig, TokenizerConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.features.exports import onnx
from nmt.features.exports.onnx import OnnxExporter
from nmt.features.exports.onnx_engine import OnnxEngine
from nmt.features.exports.onnx_graphs import DECODER, ENCODER, OPSET, quantize, write_graphs
from nmt.features.exports.tokenizer_json import (
    check_tokenizer_is_expressible,
    check_tokenizer_json,
    tokenizer_json,
)
from nmt.storage.files import write_json
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train
from tests.features.exports.clients import TRANSFORMERS_JS, needs_package, transformers_js
from tests.unit.small_models import LINES, log_probabilities, make_model, make_tokenizer

pytest.importorskip("onnx", reason="needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
CPU = torch.device("cpu")
GREEDY = DecodingConfig(beam=1, alpha=0.0, extra_length=12)
POSITIONS = 64
SHAPES = [
    {},
    {"norm_placement": "pre", "norm": "rms", "activation": "swiglu"},
    {"activation": "gelu", "positions": "learned", "max_positions": POSITIONS},
    {"tie_embeddings": False, "output_bias": True, "activation": "swish"},
    {"positions": "rotary", "kv_heads": 2, "encoder_layers": 3},
    {"positions": "alibi"},
    {"positions": "relative"},
]


def make_plain_tokenizer(model_type: str = "bpe") -> Tokenizer:
    """Return a tokenizer that does not normalise its text, as `nmt data` trains it."""
    settings = TokenizerConfig(vocab_size=40 if model_type == "bpe" else 28, model_type=model_type)
    return Tokenizer(train(LINES * 5, 5 * len(LINES), settings)[0])


def translated(engine: OnnxEngine | TorchEngine, lines: list[str]) -> list[list[int]]:
    return [best.tokens for best, *_ in engine.translate_ids(engine.tokenizer.encode_source(lines))]


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_graphs_give_the_same_scores_and_greedy_translations(tmp_path: Path, options: dict[str, object]) -> None:
    tokenizer = make_tokenizer()
    ours = make_model(tokenizer, **options)
    write_graphs(tmp_path, ours, POSITIONS)
    theirs = OnnxEngine(tmp_path, tokenizer, GREEDY, POSITIONS, "")
    assert translated(theirs, LINES) == translated(TorchEngine([ours], tokenizer, GREEDY, CPU), LINES)
    if ours.config.norm == "rms":
        return  # these random weights make PAD and BOS probable, which the graph makes impossible
    found = theirs.token_scores(tokenizer.encode_source(LINES), tokenizer.encode_target(LINES[::-1]))
    for source, target, scores in zip(LINES, LINES[::-1], found, strict=True):
        (ids,), (labels,) = tokenizer.encode_source([source]), tokenizer.encode_target([target])
        expected = log_probabilities(ours, ids, labels)
        torch.testing.assert_close(torch.tensor(scores), expected, atol=1e-3, rtol=1e-3)


def test_the_graphs_have_the_inputs_and_outputs_that_clients_expect(tmp_path: Path) -> None:
    write_graphs(tmp_path, make_model(make_tokenizer()), POSITIONS)
    encoder, decoder = (
        runtime.InferenceSession(tmp_path / f"{name}.onnx") for name in ("encoder_model", "decoder_model_merged")
    )
    assert [each.name for each in encoder.get_inputs()] == ["input_ids", "attention_mask"]
    assert [each.name for each in encoder.get_outputs()] == ["last_hidden_state"]
    cache = [f"{i}.{side}.{kind}" for i in (0, 1) for side in ("decoder", "encoder") for kind in ("key", "value")]
    given = {"encoder_attention_mask", "input_ids", "encoder_hidden_states", "use_cache_branch"}
    assert {each.name for each in decoder.get_inputs()} == given | {f"past_key_values.{name}" for name in cache}
    assert [each.name for each in decoder.get_outputs()] == ["logits", *(f"present.{name}" for name in cache)]


def test_quantized_graphs_are_smaller_and_nearly_the_same(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    ours = make_model(tokenizer, d_model=128, d_ff=256)
    write_graphs(tmp_path, ours, POSITIONS)
    quantize(tmp_path)
    small, large = (tmp_path / f"encoder_model{ending}.onnx" for ending in ("_quantized", ""))
    assert small.stat().st_size < 0.5 * large.stat().st_size
    ids = tokenizer.encode_source(LINES), tokenizer.encode_target(LINES[::-1])
    engines = [OnnxEngine(tmp_path, tokenizer, GREEDY, POSITIONS, ending) for ending in ("_quantized", "")]
    rounded, exact = ([score for row in each.token_scores(*ids) for score in row] for each in engines)
    differences = [abs(one - other) for one, other in zip(rounded, exact, strict=True)]
    assert 0 < sum(differences) < 0.25 * sum(map(abs, exact))


def test_large_products_of_quantized_numbers_are_not_cut_off(tmp_path: Path) -> None:
    onnx_library = pytest.importorskip("onnx")
    helper, kind = onnx_library.helper, onnx_library.TensorProto.FLOAT
    weights = np.ones((64, 8), np.float32)
    weights[0] = -1
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
        [helper.make_tensor_value_info("x", kind, [1, 64])], [helper.make_tensor_value_info("y", kind, [1, 8])],
        [onnx_library.numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    versions = {"opset_imports": [helper.make_opsetid("", OPSET)], "ir_version": 8}
    for name in (ENCODER, DECODER):
        onnx_library.save(helper.make_model(graph, **versions), tmp_path / f"{name}.onnx")
    quantize(tmp_path)
    session = runtime.InferenceSession(tmp_path / f"{ENCODER}_quantized.onnx")
    (found,) = session.run(None, {"x": np.ones((1, 64), np.float32)})
    assert found == pytest.approx(62, abs=0.5)


def test_tokenizer_json_splits_and_joins_as_our_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    write_json(tmp_path / "tokenizer.json", tokenizer_json(tokenizer.contents[0]))
    lines = [*LINES, "", " ", "  two  spaces ", "unknown: ßé日 Z", "catscatscats", "a", "the the"]
    check_tokenizer_json(str(tmp_path / "tokenizer.json"), tokenizer, lines)


def test_a_tokenizer_json_that_splits_in_another_way_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    wrong = tokenizer_json(tokenizer.contents[0])
    wrong["model"]["merges"] = []
    write_json(tmp_path / "tokenizer.json", wrong)
    with pytest.raises(UserError, match=r"^the export was deleted: its tokenizer.json does not split "):
        check_tokenizer_json(str(tmp_path / "tokenizer.json"), tokenizer, LINES)


@pytest.mark.parametrize(
    ("option", "value", "joint"),
    [("model_type", "unigram", True), ("normalization", "nfkc", True), ("joint", "false", False)],
)
def test_tokenizers_that_the_file_cannot_express_are_refused_by_name(option: str, value: str, joint: bool) -> None:
    config = Config()
    tokenizer = make_tokenizer(joint)
    if option == "model_type":
        tokenizer = make_plain_tokenizer("unigram")
    if joint:
        config = replace(config, tokenizer=replace(config.tokenizer, **{option: value}))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=rf"^export.target=onnx cannot express tokenizer.{option}={value}, only "):
        check_tokenizer_is_expressible("onnx", config, tokenizer)


@pytest.mark.parametrize(("option", "value"), [("d_k", 16), ("d_v", 16)])
def test_heads_of_other_widths_are_refused_by_name(option: str, value: int) -> None:
    config = replace(make_model(make_tokenizer()).config, **{option: value})  # type: ignore[arg-type]
    with pytest.raises(UserError, match=rf"^export.target=onnx cannot express model.{option}={value}, only 8: "):
        OnnxExporter().check(config)


@pytest.mark.slow
@needs_package(TRANSFORMERS_JS)
@pytest.mark.parametrize(("ending", "kind"), [("", "fp32"), ("_quantized", "q8")])
def test_transformers_js_translates_offline_as_onnxruntime(tmp_path: Path, ending: str, kind: str) -> None:
    tokenizer = make_plain_tokenizer()
    ours = make_model(tokenizer, norm_placement="pre", positions="rotary")
    folder = tmp_path / "own"
    folder.mkdir()
    onnx.write(folder, ours, tokenizer, POSITIONS, POSITIONS - 1, "int8")
    theirs = OnnxEngine(folder / "onnx", tokenizer, GREEDY, POSITIONS, ending)
    found = transformers_js(folder, kind, LINES, GREEDY.extra_length, tmp_path)["found"]
    assert [each["source"][:-1] for each in found] == tokenizer.encode_source(LINES)
    assert [[piece for piece in each["target"] if piece > 3] for each in found] == [
        [piece for piece in translated(theirs, [line])[0] if piece > 3] for line in LINES
    ]  # line by line, because numbers in int8 depend on the other sentences of a batch
