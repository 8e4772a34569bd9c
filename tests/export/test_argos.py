"""The rules of the sentence splitter, read from its graph as MiniSBD does."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nmt.export.argos import write_sentence_splitter

onnx = pytest.importorskip("onnx", reason="needs the extra argos")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, which MiniSBD runs the graph with")


def split(file: Path, text: str) -> list[str]:
    """Cut a text after each character that the graph marks as the last one of a sentence."""
    graph = onnx.load(file)
    settings = {each.key: each.value for each in graph.metadata_props}
    ids = json.loads(settings["vocab"])["_unit2id"]
    assert json.loads(settings["config"])["feat_funcs"] == ["capitalized", "numeric"]
    units = np.array([[ids.get(character, ids["<UNK>"]) for character in text]])
    features = np.array([[(each.isupper(), each.isdigit()) for each in text]], np.float32)
    (scores,) = onnxruntime.InferenceSession(file).run(None, {"units": units, "features": features})
    ends = [index + 1 for index, kind in enumerate(scores[0].argmax(-1)) if kind == 2]
    places = sorted({0, *ends, len(text)})
    return [text[begin:end].strip() for begin, end in pairwise(places)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["A cat sleeps."],
        ["no end"],
        ["A cat sleeps.", "A dog runs!", "Does it?", "Yes."],
        ["Dr. Smith sees the U.S. Army.", "He left."],
        ["Am 3. Mai kam z. B. Herr Meyer.", "Er ging."],
        ["It costs 3.5 euros.", "That is all."],
        ['He said "No!"', "She left.", "„Ja.“"],
        ["He left (at last.)", "[She stayed.]"],
        ["See www.example.com now.", "Go."],
        ["Wait… what?", "Fine."],
        ["¿Qué?", "¡Ya!", "Sí."],
    ],
    ids=str,
)
def test_sentences_of_a_paragraph_are_found(tmp_path: Path, sentences: list[str]) -> None:
    write_sentence_splitter(tmp_path / "splitter.onnx")
    assert split(tmp_path / "splitter.onnx", " ".join(sentences)) == sentences


def test_sentences_without_spaces_between_them_are_found(tmp_path: Path) -> None:
    write_sentence_splitter(tmp_path / "splitter.onnx")
    assert split(tmp_path / "splitter.onnx", "你好。再见！") == ["你好。", "再见！"]


def test_the_graph_is_valid(tmp_path: Path) -> None:
    write_sentence_splitter(tmp_path / "splitter.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "splitter.onnx"), full_check=True)
