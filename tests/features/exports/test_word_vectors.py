"""The word vectors that both graphs of a web export share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.features.exports.onnx import QUANTIZED
from nmt.features.exports.onnx_graphs import DECODER, ENCODER, PAST, quantize, write_graphs
from nmt.features.exports.web.word_vectors import FILE, share_word_vectors
from nmt.model.interface import TranslationModel
from tests.unit.small_models import make_model, make_tokenizer

pytest.importorskip("onnx", reason="needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
POSITIONS = 64


def write_int8(folder: Path, **options: object) -> TranslationModel:
    """Write the graphs of a model with int8 weights under the names of a web export, and return the model."""
    model = make_model(make_tokenizer(), d_model=64, d_ff=64, **options)
    write_graphs(folder, model, POSITIONS, shows_attention=True)
    keep_int8(folder)
    return model


def keep_int8(folder: Path) -> None:
    """Replace the graphs in a folder by those with int8 weights."""
    quantize(folder)
    for name in (ENCODER, DECODER):
        (folder / f"{name}{QUANTIZED}.onnx").replace(folder / f"{name}.onnx")


def run(folder: Path, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Return the encoder's output and the scores of the next words, given sentences of equal length."""
    encoder, decoder = (runtime.InferenceSession(folder / f"{name}.onnx") for name in (ENCODER, DECODER))
    ids, mask = np.array(sources), np.ones_like(sources)
    (states,) = encoder.run(None, {"input_ids": ids, "attention_mask": mask})
    empty = {
        each.name: np.zeros([len(ids), *(size if isinstance(size, int) else 0 for size in each.shape[1:])], np.float32)
        for each in decoder.get_inputs()
        if each.name.startswith(PAST)
    }
    given = {"encoder_hidden_states": states, "encoder_attention_mask": mask, "input_ids": np.array(targets)}
    (scores,) = decoder.run(["logits"], {**given, **empty, "use_cache_branch": np.array([False])})
    return states, scores


@pytest.mark.parametrize("options", [{}, {"output_bias": True, "norm_placement": "pre"}], ids=str)
def test_graphs_with_one_table_give_nearly_the_same_in_less_space(tmp_path: Path, options: dict[str, object]) -> None:
    model = write_int8(tmp_path, **options)
    sources, targets = [[4, 9, 17, 5], [30, 6, 8, 4]], [[2, 7, 12], [2, 31, 5]]
    before = run(tmp_path, sources, targets)
    sizes = {name: (tmp_path / f"{name}.onnx").stat().st_size for name in (ENCODER, DECODER)}
    share_word_vectors(tmp_path)
    words, width = model.projection.shape
    assert (tmp_path / FILE).stat().st_size == words * width + words * (4 + 1)
    for name, tables in ((ENCODER, 1), (DECODER, 2)):
        assert (tmp_path / f"{name}.onnx").stat().st_size < sizes[name] - tables * words * width + 1500  # the lookup
    for found, expected in zip(run(tmp_path, sources, targets), before, strict=True):
        assert 0 < np.abs(found - expected).mean() < 0.05 * np.abs(expected).mean()


def test_each_word_is_rounded_with_its_own_scale(tmp_path: Path) -> None:
    """With one scale for the table, a word of large numbers would take the precision of all others."""
    model = make_model(make_tokenizer(), d_model=64, d_ff=64)
    with torch.no_grad():
        model.projection[40] *= 50
    write_graphs(tmp_path, model, POSITIONS, shows_attention=True)
    exact, _ = run(tmp_path, [[4, 9, 17, 5]], [[2, 7]])
    keep_int8(tmp_path)
    coarse, _ = run(tmp_path, [[4, 9, 17, 5]], [[2, 7]])
    share_word_vectors(tmp_path)
    fine, _ = run(tmp_path, [[4, 9, 17, 5]], [[2, 7]])
    assert np.abs(fine - exact).mean() < 0.5 * np.abs(coarse - exact).mean()


def test_a_model_with_separate_tables_stays_as_it_is(tmp_path: Path) -> None:
    write_int8(tmp_path, tie_embeddings=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    share_word_vectors(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
