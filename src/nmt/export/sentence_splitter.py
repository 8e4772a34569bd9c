"""A sentence splitter by rules, as the small ONNX graph over characters that Argos Translate's MiniSBD reads.

MiniSBD replaces each character by an id, adds features, and takes the class of each character from the graph: 2 is the
last one of a sentence, 0 any other. The rules look at two characters on either side, so they are one convolution: each
rule is a filter that counts its conditions, and holds if all of them are met.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nmt.packages import import_optional

PAD, UNKNOWN, SPACE, STOP, MARK, CLOSE, WIDE, OPEN = range(8)
CLASSES: dict[int, str] = {SPACE: " ", STOP: ".", MARK: "!?…", CLOSE: "\"'”’»)]", WIDE: "。！？", OPEN: "“„«¿¡(["}
"""The characters of each class, which share an id."""
FEATURES = ("capitalized", "numeric")
"""What MiniSBD adds to each character."""
CAPITAL, DIGIT = OPEN + 1, OPEN + 2
"""The channels of the features, after those of the classes."""
CHANNELS = DIGIT + 1
NEIGHBOURS = 2
"""How many characters a rule sees on either side."""
IR_VERSION, OPSET = 8, 13
"""Versions of ONNX that runtimes from 2022 on read."""

Condition = tuple[int, tuple[int, ...]]
"""A distance from the character, and the channels of which one must be there."""
_SENTENCE_FOLLOWS: list[Condition] = [(1, (SPACE,)), (2, (CAPITAL, OPEN, CLOSE, DIGIT))]
_SHORT: list[Condition] = [(-1, (SPACE, CAPITAL, DIGIT, STOP)), (-2, (SPACE, CAPITAL, DIGIT, STOP))]
"""What is before the point of an abbreviation such as "Dr.", "z. B." or "U.S.", or of an ordinal number."""
RULES: list[tuple[list[Condition], list[Condition]]] = [
    ([(0, (STOP,)), *_SENTENCE_FOLLOWS], _SHORT),
    ([(0, (MARK,)), *_SENTENCE_FOLLOWS], []),
    ([(0, (CLOSE,)), (-1, (STOP, MARK)), *_SENTENCE_FOLLOWS], []),
    ([(0, (WIDE,))], []),
]
"""Conditions that must all hold, and conditions of which none may hold."""


def write_sentence_splitter(file: Path) -> None:
    """Write the graph with the settings that MiniSBD reads from it."""
    onnx = import_optional("onnx")
    model = onnx.helper.make_model(
        _graph(onnx), opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    ids = {"<PAD>": PAD, "<UNK>": UNKNOWN} | {each: index for index, text in CLASSES.items() for each in text}
    settings = {
        "lang_code": "any",
        "config": json.dumps({"feat_funcs": FEATURES, "batch_size": 16}),
        "vocab": json.dumps({"_unit2id": ids}),
    }
    onnx.helper.set_model_props(model, settings)
    file.write_bytes(model.SerializeToString())


def _graph(onnx: Any) -> Any:
    """Return the graph: characters (B, L) and features (B, L, 2) to scores of classes (B, L, 3)."""
    helper, numbers = onnx.helper, onnx.numpy_helper.from_array
    weights, bias = _filters()
    constants = {
        "depth": np.array([OPEN + 1]), "off_on": np.array([0, 1], np.float32), "filters": weights, "bias": bias,
        "last_class": np.array([[0, 0, 1]], np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("OneHot", ["units", "depth", "off_on"], ["classes"]),
        helper.make_node("Concat", ["classes", "features"], ["characters"], axis=2),
        helper.make_node("Transpose", ["characters"], ["channels"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["channels", "filters", "bias"], ["rules"], pads=[NEIGHBOURS, NEIGHBOURS]),
        helper.make_node("ReduceMax", ["rules"], ["best"], axes=[1]),
        helper.make_node("Transpose", ["best"], ["column"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["column", "last_class"], ["scores"]),
    ]
    tensor, kinds = helper.make_tensor_value_info, onnx.TensorProto
    inputs = [tensor("units", kinds.INT64, ["B", "L"]), tensor("features", kinds.FLOAT, ["B", "L", len(FEATURES)])]
    outputs = [tensor("scores", kinds.FLOAT, ["B", "L", 3])]
    return helper.make_graph(
        nodes, "sentences", inputs, outputs, [numbers(value, name) for name, value in constants.items()]
    )


def _filters() -> tuple[Any, Any]:
    """Return weights (rules, channels, places) and biases; a filter is positive where its rule holds."""
    weights = np.zeros((len(RULES), CHANNELS, 2 * NEIGHBOURS + 1), np.float32)
    bias = np.zeros(len(RULES), np.float32)
    for index, (required, forbidden) in enumerate(RULES):
        for offset, channels in required:
            weights[index, list(channels), NEIGHBOURS + offset] = 1
        for offset, channels in forbidden:
            weights[index, list(channels), NEIGHBOURS + offset] = -len(required)
        bias[index] = 0.5 - len(required)
    return weights, bias
