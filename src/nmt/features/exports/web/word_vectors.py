"""One int8 table of word vectors for both graphs of a model with tied embeddings.

Otherwise a browser would load it three times: the encoder and the decoder look words up, and the decoder multiplies by
the table to score them. The table is rounded for the product, with a scale for each word, and both graphs name a file
that has it. onnxruntime turns the table around for the product when it loads the graph.
"""

from pathlib import Path
from typing import Any

from nmt.compute.packages import import_optional
from nmt.features.exports.onnx_graphs import DECODER, ENCODER

FILE = "word_vectors.bin"
LOOKED_UP = "model.vectors.shared_quantized"
"""The table of tied embeddings in a graph with int8 weights."""
TABLE, SCALES, ZEROS = "word_vectors", "word_vectors_scale", "word_vectors_zero_point"
TURNED = "word_vectors_turned"


def share_word_vectors(folder: Path) -> None:
    """Move the word vectors of both graphs into one file, if the model has one table for all uses."""
    onnx = import_optional("onnx")
    models = {name: onnx.load(folder / f"{name}.onnx") for name in (ENCODER, DECODER)}
    if not all(_named(model.graph, LOOKED_UP) for model in models.values()):
        return
    contents = _take_projection(onnx, models[DECODER].graph)
    offset, places = 0, {}
    with (folder / FILE).open("wb") as file:
        for name, values in contents.items():
            places[name] = offset
            offset += file.write(values.tobytes())
    for name, model in models.items():
        _look_up_by_word(onnx, model.graph)
        for part, values in contents.items():
            model.graph.initializer.append(_reference(onnx, part, values, places[part]))
        onnx.save(model, folder / f"{name}.onnx")


def _named(graph: Any, name: str) -> Any:
    """Return the tensor of this name that a graph holds, or None."""
    return next((each for each in graph.initializer if each.name == name), None)


def _take_projection(onnx: Any, graph: Any) -> dict[str, Any]:
    """Let the last product of a decoder read the shared table, and return its table (V, d), scales and zero points."""
    place = max(place for place, node in enumerate(graph.node) if node.op_type == "MatMulInteger")
    product = graph.node[place]
    name = product.input[1].removesuffix("_quantized")
    old = {part: _named(graph, f"{name}_{part}") for part in ("quantized", "scale", "zero_point")}
    matrix, scales, zeros = (onnx.numpy_helper.to_array(each) for each in old.values())
    for node in graph.node:
        node.input[:] = [SCALES if each == f"{name}_scale" else each for each in node.input]
    product.input[1], product.input[3] = TURNED, ZEROS
    graph.node.insert(place, onnx.helper.make_node("Transpose", [TABLE], [TURNED], perm=[1, 0]))
    for each in old.values():
        graph.initializer.remove(each)
    return {TABLE: matrix.T.copy(), SCALES: scales, ZEROS: zeros}


def _look_up_by_word(onnx: Any, graph: Any) -> None:
    """Let the embedding read the shared table, with the scale and the zero point of each word."""
    place = next(place for place, node in enumerate(graph.node) if LOOKED_UP in node.input)
    look_up = graph.node[place]
    _, ids = look_up.input
    look_up.input[0] = TABLE
    restored = next(node for node in graph.node if look_up.output[0] in node.input)
    for part in (SCALES, ZEROS):
        graph.node.insert(place, onnx.helper.make_node("Gather", [part, ids], [f"{part}_of_words"]))
    old = {LOOKED_UP, *restored.input[1:]}
    restored.input[1:] = [f"{SCALES}_of_words", f"{ZEROS}_of_words"]
    restored.attribute.append(onnx.helper.make_attribute("axis", 0))
    for each in [each for each in graph.initializer if each.name in old]:
        graph.initializer.remove(each)


def _reference(onnx: Any, name: str, values: Any, offset: int) -> Any:
    """Return a tensor whose values are in the file, from this place on."""
    tensor = onnx.TensorProto(
        name=name, dims=values.shape, data_type=onnx.helper.np_dtype_to_tensor_dtype(values.dtype),
        data_location=onnx.TensorProto.EXTERNAL,
    )  # fmt: skip
    for key, value in (("location", FILE), ("offset", offset), ("length", values.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor
