"""Weights and word vectors of the model that a run begins from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.config.data import TokenizerConfig
from nmt.config.model import ModelConfig
from nmt.config.saved import to_yaml
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel, trainable
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, load, write
from nmt.text.extend_tokenizer import extend
from nmt.text.tokenizer import Tokenizer
from nmt.training.fine_tuning import begin_from, freeze
from tests.unit.text.test_sentencepiece_model import OLD, learn
from tests.unit.training.fine_tuning.test_extend_tokenizer import NEW

MODEL = ModelConfig(layers=1, d_model=16, d_ff=16, heads=2, output_bias=True)


def new_model(tokenizer: Tokenizer, model: ModelConfig = MODEL, seed: int = 1) -> TranslationModel:
    torch.manual_seed(seed)
    built = build_model(model, tokenizer.source_size, tokenizer.target_size)
    with torch.no_grad():
        for weight in built.parameters():
            weight.add_(torch.randn_like(weight))
    return built


def saved(folder: Path, tokenizer: Tokenizer, model: ModelConfig = MODEL, weights: int = 1) -> Checkpoint:
    config = replace(Config(), model=model, tokenizer=TokenizerConfig(joint=tokenizer.joint))
    base = Checkpoint(
        meta=CheckpointMeta(step=3), weights=new_model(tokenizer, model, weights).state_dict(),
        tokenizer_files=tokenizer.files, config_text=to_yaml(config),
    )  # fmt: skip
    write(folder / "base", base)
    return load(folder / "base")


def config(model: ModelConfig = MODEL, **training: object) -> Config:
    begun = TrainingConfig(init_from="base", **training)  # type: ignore[arg-type]
    return replace(Config(), model=model, training=begun)


def test_all_weights_are_taken_if_the_tokenizer_is_the_same(tmp_path: Path) -> None:
    tokenizer = Tokenizer(learn(OLD, 45))
    origin, model = saved(tmp_path, tokenizer), new_model(tokenizer, seed=2)
    said = begin_from(model, tokenizer, origin, config())
    assert said.startswith(f"beginning from {tmp_path / 'base'}, step 3: ")
    assert all(torch.equal(weight, origin.weights[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize("tied", [True, False])
def test_the_vector_of_a_new_piece_is_the_mean_of_the_pieces_that_spell_it(tmp_path: Path, tied: bool) -> None:
    shape = replace(MODEL, tie_embeddings=tied)
    old = Tokenizer(learn(OLD, 45)) if tied else Tokenizer(learn(OLD, 45), learn(OLD, 42))
    learned = Tokenizer(learn(NEW, 60)) if tied else Tokenizer(learn(NEW, 60), learn(NEW, 55))
    new = extend(old, learned, 70, "base")
    origin, model = saved(tmp_path, old, shape), new_model(new, shape, seed=2)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    begin_from(model, new, origin, config(shape, init_vocabulary="extend"))
    sides = {"shared": 1} if tied else {"source": 0, "target": 1, "projection": 1}
    composed = 0
    for use, side in {**sides, "bias": 1}.items():
        name = f"vectors.{use}"
        pieces, old_pieces = new.vocabularies[side], old.vocabularies[side]
        characters = {each for each in old_pieces if len(each) == 1}
        for index, piece in enumerate(pieces):
            found = model.state_dict()[name][index]
            if index < len(old_pieces):
                assert torch.equal(found, origin.weights[name][index])
            elif not {*piece} & characters:
                assert torch.equal(found, before[name][index])
            elif {*piece} <= characters:
                spelled = spell(piece, old_pieces)
                if spelled is not None:
                    composed += 1
                    torch.testing.assert_close(found, origin.weights[name][spelled].mean(0))
    assert composed


def spell(piece: str, pieces: Sequence[str]) -> list[int] | None:
    """Return the ids of the characters of a piece, if no longer old piece is in it."""
    if any(other in piece for other in pieces[4:] if len(other) > 1):
        return None
    return [pieces.index(character) for character in piece]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d_model": 32}, r"vectors.shared is \[45, 16\], not \[45, 32\]; .* more: set model.d_model=16, or leave"),
        ({"tie_embeddings": False}, "vectors.projection is missing; .*: set model.tie_embeddings=true"),
        ({"activation": "gelu"}, "model.activation is gelu, not relu: set model.activation=relu"),
        ({"output_bias": False}, "vectors.bias is not in this model: set model.output_bias=true"),
        ({"positions": "learned"}, "model.positions is learned, not sinusoidal"),
    ],
)  # fmt: skip
def test_another_model_is_refused_by_name(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    tokenizer = Tokenizer(learn(OLD, 45))
    shape = replace(MODEL, **changes)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=words):
        begin_from(new_model(tokenizer, shape), tokenizer, saved(tmp_path, tokenizer), config(shape))


def test_another_dropout_fits(tmp_path: Path) -> None:
    tokenizer = Tokenizer(learn(OLD, 45))
    shape = replace(MODEL, dropout=0.4, initialization="small")
    model, origin = new_model(tokenizer, shape, seed=2), saved(tmp_path, tokenizer)
    begin_from(model, tokenizer, origin, config(shape))
    assert model.config.dropout == 0.4
    assert all(torch.equal(value, origin.weights[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    "written",
    [
        {"d_k": 8, "d_v": 8},
        {"kv_heads": 2},
        {"encoder_layers": 1},
        {"layers": 5, "encoder_layers": 1, "decoder_layers": 1},
        {"max_positions": 99},
    ],
)
def test_the_same_model_in_other_words_fits(tmp_path: Path, written: dict[str, int]) -> None:
    tokenizer = Tokenizer(learn(OLD, 45))
    shape = replace(MODEL, **written)  # type: ignore[arg-type]
    begin_from(new_model(tokenizer, shape), tokenizer, saved(tmp_path, tokenizer), config(shape))


def test_another_tokenizer_is_refused_unless_the_settings_ask_for_it(tmp_path: Path) -> None:
    old, new = Tokenizer(learn(OLD, 45)), Tokenizer(learn(NEW, 45))
    origin = saved(tmp_path, old)
    with pytest.raises(UserError, match=r"was prepared with another tokenizer than .*: run `make data` with the same"):
        begin_from(new_model(new), new, origin, config())
    model = new_model(new, seed=2)
    begin_from(model, new, origin, config(init_vocabulary="new"))
    name = next(name for name in origin.weights if not name.startswith("vectors."))
    assert torch.equal(model.state_dict()[name], origin.weights[name])


def test_weights_of_another_vocabulary_than_the_tokenizer_are_refused(tmp_path: Path) -> None:
    old, new = Tokenizer(learn(OLD, 45)), Tokenizer(learn(NEW, 50))
    origin = saved(tmp_path, old)
    origin.weights["vectors.shared"] = origin.weights["vectors.shared"][:40]
    with pytest.raises(UserError, match="has 40 vectors for 45 word pieces: restore it"):
        begin_from(new_model(new), new, origin, config(init_vocabulary="new"))


def test_frozen_parts_are_not_trainable() -> None:
    tokenizer = Tokenizer(learn(OLD, 45))
    model = new_model(tokenizer)
    freeze(model, ["embeddings", "encoder.0.feed_forward.*"])
    left = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    everything = {name for name, _ in model.named_parameters()}
    assert everything - left == {
        each for each in everything if each.startswith(("vectors.", "encoder.0.feed_forward."))
    }
    assert len(trainable(model)) == len(left)
