"""Weights and word vectors of the model that a run begins from, and weights that training leaves as they are."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.data import TokenizerConfig
from nmt.config.model import ModelConfig
from nmt.config.saved import to_yaml
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, load, write
from nmt.text.extend_tokenizer import extend
from nmt.text.tokenizer import Tokenizer
from nmt.training.fine_tuning import begin_from, freeze
from nmt.training.trainer import Trainer
from tests.unit.small_models import learn
from tests.unit.text.test_extend_tokenizer import NEW
from tests.unit.text.test_sentencepiece_model import OLD
from tests.unit.training.test_trainer import TRAINING, VOCABULARY, batches_of, store

__all__ = ["store"]
MODEL = ModelConfig(layers=1, d_model=16, d_ff=16, heads=2, output_bias=True)


def new_model(tokenizer: Tokenizer, model: ModelConfig = MODEL, seed: int = 1) -> TranslationModel:
    torch.manual_seed(seed)
    built = build_model(model, tokenizer.source_size, tokenizer.target_size)
    with torch.no_grad():
        for weight in built.parameters():
            weight.add_(torch.randn_like(weight))
    return built


def saved(folder: Path, tokenizer: Tokenizer, model: ModelConfig = MODEL) -> Checkpoint:
    config = replace(Config(), model=model, tokenizer=TokenizerConfig(joint=tokenizer.joint))
    base = Checkpoint(
        meta=CheckpointMeta(step=3), weights=new_model(tokenizer, model).state_dict(),
        tokenizer_files=tokenizer.files, config_text=to_yaml(config),
    )  # fmt: skip
    write(folder / "base", base)
    return load(folder / "base")


def config(model: ModelConfig = MODEL, **training: object) -> Config:
    begun = TrainingConfig(init_from="base", **training)  # type: ignore[arg-type]
    return replace(Config(), model=model, training=begun)


@pytest.mark.parametrize(
    "written",
    [
        {"dropout": 0.4, "initialization": "small"},
        {"d_k": 8, "d_v": 8},
        {"kv_heads": 2},
        {"layers": 5, "encoder_layers": 1, "decoder_layers": 1},
        {"max_positions": 99},
    ],
)
def test_all_weights_are_taken_by_the_same_model_in_other_words(tmp_path: Path, written: dict[str, int]) -> None:
    tokenizer = Tokenizer(learn(OLD, 45))
    shape = replace(MODEL, **written)  # type: ignore[arg-type]
    origin, model = saved(tmp_path, tokenizer), new_model(tokenizer, shape, seed=2)
    said = begin_from(model, tokenizer, origin, config(shape))
    assert said == f"beginning from {tmp_path / 'base'}, step 3"
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


def test_another_tokenizer_is_refused_unless_the_settings_ask_for_it(tmp_path: Path) -> None:
    old, new = Tokenizer(learn(OLD, 45)), Tokenizer(learn(NEW, 45))
    origin = saved(tmp_path, old)
    with pytest.raises(UserError, match=r"was prepared with another tokenizer than .*: run `make data` with the same"):
        begin_from(new_model(new), new, origin, config())
    begin_from(new_model(new, seed=2), new, origin, config(init_vocabulary="new"))


WITH_BIAS = replace(MODEL, dropout=0.0)
FROZEN = (["encoder"], ["embeddings"], ["*.weight"])


def frozen_trainer(names: list[str], precision: torch.dtype, parallel: int = 1) -> Trainer:
    torch.manual_seed(3)
    model = build_model(WITH_BIAS, VOCABULARY, VOCABULARY)
    freeze(model, names)
    machine = Machine(torch.device("cpu"), precision)
    return Trainer(model, replace(TRAINING, device_tokens=20), machine, seed=1, parallel=parallel)


def test_the_nearest_part_or_parameter_is_suggested() -> None:
    model = build_model(MODEL, VOCABULARY, VOCABULARY)
    with pytest.raises(UserError, match=r"decodr is no part and no parameter .*: did you mean decoder\?"):
        freeze(model, ["decodr"])
    with pytest.raises(UserError, match=r"did you mean vectors\.shared\?"):
        freeze(model, ["vectors.sharde"])


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("names", FROZEN, ids=",".join)
@pytest.mark.parametrize("parallel", [1, 2])
def test_only_the_others_have_a_gradient_and_it_is_the_same(
    store: PairStore, names: list[str], precision: torch.dtype, parallel: int
) -> None:
    whole, frozen = frozen_trainer([], precision, parallel), frozen_trainer(names, precision, parallel)
    before = deepcopy(dict(frozen.model.named_parameters()))
    (batch,) = batches_of(store, whole.config, 1)
    for each in (whole, frozen):
        with each.working_weights.active():
            each.gradient.add(batch, 1)
    trained = {name for name, parameter in frozen.model.named_parameters() if parameter.requires_grad}
    expected = {name: parameter.grad for name, parameter in whole.model.named_parameters()}
    assert 0 < len(trained) < len(expected)
    for name, parameter in frozen.model.named_parameters():
        if name in trained:
            torch.testing.assert_close(parameter.grad, expected[name], msg=name)
        else:
            assert parameter.grad is None, name
    frozen.try_out(batch.micro_batches[0])
    frozen.update(batch)
    for name, weight in frozen.model.named_parameters():
        assert torch.equal(weight, before[name]) == (name not in trained), name
