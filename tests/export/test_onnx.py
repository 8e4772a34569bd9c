"""The graphs of exports to ONNX, and their tokenizer."""

from pathlib import Path

import numpy as np
import pytest

from nmt.export.onnx import fast_tokenizer
from nmt.export.onnx_graphs import DECODER, ENCODER, OPSET, quantize
from nmt.text.special import EOS, UNK
from tests.export.models import make_plain_tokenizer, make_trained, native, target, written
from tests.unit.small_models import LINES

onnx_library = pytest.importorskip("onnx", reason="needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("tokenizers", reason="needs the extra onnx")


def test_large_products_of_quantized_numbers_are_not_cut_off(tmp_path: Path) -> None:
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


def test_tokenizer_json_splits_and_joins_as_our_tokenizer() -> None:
    tokenizer = make_plain_tokenizer()
    theirs = fast_tokenizer(tokenizer.contents[0])
    for line in [*LINES, "", " ", "  two  spaces ", "unknown: ßé日 Z", "catscatscats", "a", "the the"]:
        (ids,) = tokenizer.encode_source([line])
        assert theirs.encode(line).ids == [*ids, EOS]
        known = [piece for piece in ids if piece != UNK]  # it leaves unknown pieces out
        assert theirs.decode(known) == tokenizer.decode(known)


def test_only_the_beginning_of_a_long_translation_is_scored(tmp_path: Path) -> None:
    trained, ours = make_trained("onnx", positions="learned", max_positions=257)
    program = target("onnx").read(written(tmp_path, "onnx", trained), trained)
    line, translation = ["a dog"], [" ".join(["the small dog"] * 100)]
    (expected,) = native("onnx", ours, trained).score(line, translation)
    assert program.score(line, translation) == pytest.approx([expected.log_probability], abs=1e-3)
