"""Exports to Marian: files, weights, refusals, and bergamot itself under Node."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from nmt.config.choices import CHOICES
from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.features.exports.marian import SEARCH, MarianExporter, check_int8, write_weights
from nmt.marian.files import BINARY, INT8_BINARY, NPZ, SETTINGS, read_binary, read_npz, write_binary, write_npz
from nmt.marian.vocabularies import write_vocabularies
from nmt.marian.weights import NEVER, OUTPUT_BIAS, from_marian, to_marian
from nmt.model.interface import TranslationModel
from nmt.text.special import BOS, PAD
from nmt.text.tokenizer import Tokenizer
from tests.features.exports.clients import BERGAMOT, bergamot, marian, needs_marian, needs_package
from tests.features.exports.web_folder import trained
from tests.unit.small_models import LINES, make_model, make_tokenizer, teach

CPU = torch.device("cpu")
GREEDY = DecodingConfig(beam=1, alpha=0.0, extra_length=12)
MARIANS = "marian" if "marian" in CHOICES["model.positions"] else ""
needs_positions = pytest.mark.skipif(not MARIANS, reason="needs the feature with Marian's positions")
SHAPES: list[dict[str, object]] = [
    {},
    {"activation": "swish"},
    {"output_bias": True, "decoder_layers": 1},
    {"tie_embeddings": False},
]


def make_zero_start(tokenizer: Tokenizer, **options: object) -> TranslationModel:
    """Return a model whose translations begin with a zero vector, which training leaves as it is."""
    model = make_model(tokenizer, **options)
    for name, parameter in model.named_parameters():
        if name in ("vectors.shared", "vectors.target"):
            with torch.no_grad():
                parameter[BOS] = 0
            parameter.register_hook(without_start)
    return model


def without_start(gradient: torch.Tensor) -> torch.Tensor:
    """Return a gradient without that of the vector with which translations begin."""
    return gradient.index_fill(0, torch.tensor([BOS]), 0)


def arrays_of(model: TranslationModel) -> dict[str, Any]:
    return to_marian(model.config, model.state_dict())


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_weights_come_back_as_they_were(options: dict[str, object]) -> None:
    tokenizer = make_tokenizer(options.get("tie_embeddings") is not False)
    model = make_model(tokenizer, **options)
    weights, arrays = model.state_dict(), arrays_of(model)
    found = from_marian(model.config, arrays, (tokenizer.source_size, tokenizer.target_size))
    assert found.keys() == weights.keys()
    for name, weight in weights.items():
        if name != "vectors.bias":
            assert torch.equal(found[name], weight), name
    assert arrays[OUTPUT_BIAS][0, [PAD, BOS]].tolist() == [NEVER, NEVER]


def test_matrices_are_transposed_and_the_stream_has_sines_before_cosines() -> None:
    model = make_model(make_tokenizer())
    weights, arrays = model.state_dict(), arrays_of(model)
    width = model.config.d_model
    order = [*range(0, width, 2), *range(1, width, 2)]
    keys = weights["decoder.0.attention.query_key_value.weight"][width : 2 * width]
    assert np.array_equal(arrays["decoder_l1_self_Wk"], keys[:, order].T.numpy())
    assert np.array_equal(arrays["encoder_l2_ffn_W2"], weights["encoder.1.feed_forward.outer.weight"][order].T.numpy())
    assert arrays["encoder_l1_ffn_ffn_ln_scale"].shape == (1, width)


def test_words_that_no_vocabulary_has_are_never_generated() -> None:
    tokenizer = make_tokenizer(joint=False)
    arrays = arrays_of(make_model(tokenizer, tie_embeddings=False))
    rows = {name: len(arrays[name]) for name in ("encoder_Wemb", "decoder_Wemb")}
    assert all(size % 8 == 0 for size in rows.values())
    assert rows["decoder_Wemb"] - tokenizer.target_size == 4
    assert arrays["decoder_ff_logit_out_W"].shape[1] == rows["decoder_Wemb"]
    assert arrays[OUTPUT_BIAS][0, tokenizer.target_size :].tolist() == [NEVER] * 4


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    arrays = arrays_of(make_model(make_tokenizer()))
    write_npz(tmp_path / "model.npz", arrays, "a: 1\n")
    write_binary(tmp_path / "exact.bin", arrays, "a: 1\n", int8=False)
    write_binary(tmp_path / "int8.bin", arrays, "a: 1\n", int8=True)
    for found in (read_npz(tmp_path / "model.npz"), read_binary(tmp_path / "exact.bin")):
        assert found.keys() == arrays.keys()
        assert all(np.array_equal(found[name], array) for name, array in arrays.items())
    rounded = read_binary(tmp_path / "int8.bin")
    for name, array in arrays.items():
        step = np.abs(array).max() / 127 if "_W" in f"_{name}" else 0
        assert np.abs(rounded[name] - array).max() <= 0.5001 * step
    with np.load(tmp_path / "model.npz") as stored:
        assert bytes(stored[SETTINGS]) == b"a: 1\n\0"


def test_contents_of_the_binary_file_begin_at_a_multiple_of_256_bytes(tmp_path: Path) -> None:
    matrix = np.array([[1.0, -2.0], [0.5, 0.25], [0, 1]], np.float32)
    write_binary(tmp_path / "x", {"l_W1": matrix}, "", int8=True)
    data = (tmp_path / "x").read_bytes()
    assert struct.unpack_from("<2Q", data) == (1, 2)
    assert struct.unpack_from("<4Q", data, 16) == (5, 0x4101, 2, 256)
    assert struct.unpack_from("<4Q", data, 48) == (len(SETTINGS) + 1, 0x101, 1, 1)
    assert list(np.frombuffer(data, np.int8, 6, 256)) == [64, 32, 0, -127, 16, 64]  # transposed
    assert struct.unpack_from("<f", data, 262) == (63.5,)
    assert len(data) == 256 + 256 + 1


@pytest.mark.parametrize(
    ("option", "value"),
    [("norm", "rms"), ("norm_placement", "pre"), ("positions", "sinusoidal"), ("positions", "learned"),
     ("activation", "gelu"), ("activation", "swiglu"), ("kv_heads", 1), ("d_k", 16), ("d_v", 16)],
)  # fmt: skip
def test_models_that_marian_cannot_express_are_refused_by_name(option: str, value: object) -> None:
    config = replace(expressible_model(), **{option: value})  # type: ignore[arg-type]
    with pytest.raises(UserError, match=rf"^export.target=marian cannot express model.{option}={value}, only "):
        MarianExporter().check(config)


@needs_positions
def test_a_model_with_marians_positions_is_accepted() -> None:
    MarianExporter().check(expressible_model())
    MarianExporter().check(replace(expressible_model(), activation="swish", tie_embeddings=False))


def test_widths_that_int8_products_do_not_support_are_refused_by_name() -> None:
    check_int8(ModelConfig())
    with pytest.raises(UserError, match=r"cannot express model.d_ff=100, only multiples of 64: [^\n]*$"):
        check_int8(ModelConfig(d_ff=100))


def test_translations_that_begin_with_a_vector_are_refused(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    with pytest.raises(UserError, match=r"^export.target=marian cannot express a model whose .* zero vector[^\n]*$"):
        MarianExporter().write(tmp_path, trained(tokenizer, tmp_path, make_model(tokenizer), "float32"))


@pytest.mark.parametrize(("quantization", "binary"), [("float32", BINARY), ("int8", INT8_BINARY)])
def test_an_export_opened_again_translates_as_the_model(tmp_path: Path, quantization: str, binary: str) -> None:
    tokenizer = make_tokenizer()
    model = make_zero_start(tokenizer, d_model=64, d_ff=64)
    folder = tmp_path / "marian"
    folder.mkdir()
    settings = trained(tokenizer, tmp_path, model, quantization)
    MarianExporter().write(folder, settings)
    assert {file.name for file in folder.iterdir()} == {NPZ, binary, "vocab.spm", SEARCH}
    native = MarianExporter().native_engine(TorchEngine([model], tokenizer, settings.decoding, CPU), settings)
    opened = MarianExporter().open(folder, native, LINES)
    pairs = zip(native.score(LINES, LINES), opened.score(LINES, LINES), strict=True)
    for ours, theirs in pairs:
        assert theirs.log_probability == pytest.approx(
            ours.log_probability, rel=1e-5 if quantization == "float32" else 0.1
        )
    if quantization == "float32":
        assert [each.text for each in opened.translate(LINES)] == [each.text for each in native.translate(LINES)]
    search = yaml.safe_load((folder / SEARCH).read_text(encoding="utf-8"))
    assert (search["models"], search["vocabs"]) == ([NPZ], ["vocab.spm", "vocab.spm"])


@pytest.mark.slow
@needs_package(BERGAMOT)
@needs_positions
@pytest.mark.parametrize(("name", "precision"), [(BINARY, "float32"), (INT8_BINARY, "int8shiftAll")])
@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_bergamot_translates_as_our_model(
    tmp_path: Path, name: str, precision: str, options: dict[str, object]
) -> None:
    tokenizer = make_tokenizer(options.get("tie_embeddings") is not False)
    sizes = {"positions": MARIANS, "d_model": 64, "d_ff": 64}
    ours = teach(make_zero_start(tokenizer, **sizes, **options), tokenizer, 300)
    write_weights(tmp_path, ours.config, ours.state_dict(), int8=name == INT8_BINARY)
    write_vocabularies(tmp_path, tokenizer)
    found = bergamot(tmp_path, name, precision, LINES, tmp_path)["found"]
    engine = TorchEngine([ours], tokenizer, GREEDY, CPU)
    assert found == [each.text for each in engine.translate(LINES)]


@pytest.mark.slow
@needs_marian
@needs_positions
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_marian_itself_translates_as_our_model(tmp_path: Path, options: dict[str, object], beam: int) -> None:
    tokenizer = make_tokenizer(options.get("tie_embeddings") is not False)
    ours = teach(make_zero_start(tokenizer, positions=MARIANS, **options), tokenizer, 300)
    folder = tmp_path / "marian"
    folder.mkdir()
    MarianExporter().write(folder, trained(tokenizer, tmp_path, ours, "float32"))
    answer = marian(folder, f"--beam-size {beam} --normalize 0 --n-best", LINES)["found"]
    listed = (each.split(" ||| ") for each in reversed(answer))
    theirs = {int(line): (text, float(score)) for line, text, _, score in listed}  # the best one comes first
    engine = TorchEngine([ours], tokenizer, replace(GREEDY, beam=beam), CPU)
    # Our probabilities count padding and the start mark, which Marian never generates.
    for line, translation in enumerate(engine.translate(LINES)):
        (candidate,), (text, score) = translation.candidates, theirs[line]
        assert candidate.text == text
        assert candidate.score == pytest.approx(score, abs=0.01)


def expressible_model() -> ModelConfig:
    return ModelConfig(positions=MARIANS or "sinusoidal")
