"""What the user gives wins, and a run that has begun keeps its values."""

from pathlib import Path

import pytest

from nmt.config.commands import DERIVED, SHAPE
from nmt.config.compose import compose, given_settings
from nmt.config.keys import value_of, with_values
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import ConfigError
from nmt.own_text.complete import with_values_for_text
from nmt.own_text.prepare import plan_training
from nmt.runs.layout import RunLayout, step_folder_name
from tests.integration.toy import pairs, refuse, write_pairs

NAMES = [*DERIVED, "own.minutes"]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Settings of a run on two files."""
    files = write_pairs(tmp_path / "train", pairs(100, 1))
    paths = [f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs"]
    return ["experiment=own", f"data.train={files}", *paths]


def completed(words: list[str]) -> Config:
    return with_values_for_text(compose(words), given_settings(words))


def test_share_to_hold_out_beside_named_text_is_refused(words: list[str]) -> None:
    named = [*words, "data.valid=[a,b]", "data.test=[c,d]"]
    assert completed(named).data.hold_out == 0.01
    assert completed([*named, "data.hold_out=0"]).data.hold_out == 0
    assert completed([*words, "data.valid=[a,b]", "data.hold_out=0.2"]).data.hold_out == 0.2
    with pytest.raises(ConfigError, match=r"data\.hold_out=0\.2 has no effect, because data\.valid and data\.test are"):
        completed([*named, "data.hold_out=0.2"])


def begin(config: Config, **values: object) -> Config:
    """Make the run look as if it had saved two checkpoints, the last of them with these values."""
    begun = with_values(config, {name.replace("__", "."): value for name, value in values.items()})
    for step, settings in ((5, config), (10, begun)):
        folder = RunLayout(config.run_folder).checkpoints / step_folder_name(step)
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(to_yaml(settings), encoding="utf-8")
    return begun


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], set[str]()),
        (["training.steps=77"], {"training.steps"}),
        (["model.d_model=64"], {*SHAPE}),
        (["model.encoder_layers=6"], {*SHAPE}),
        (["training=base"], {name for name in DERIVED if name.startswith("training.")}),
        (["own.keep=[model.dropout]"], {"model.dropout"}),
        (["noise.bpe_dropout=0.2"], {"noise.bpe_dropout"}),
    ],
)
def test_settings_that_are_given_are_kept(words: list[str], given: list[str], expected: set[str]) -> None:
    config = completed([*words, *given])
    assert {*config.own.keep} == expected
    asked = compose([*words, *given])
    assert [value_of(config, name) for name in expected] == [value_of(asked, name) for name in expected]


def test_settings_of_the_user_s_own_file_are_kept(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    mine = "# @package _global_\n# Mine.\ndefaults:\n  - own\nname: mine\ntraining:\n  warmup_steps: 123\n"
    (tmp_path / "conf" / "experiment" / "mine.yaml").write_text(mine, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    config = completed(["experiment=mine", *words[1:]])
    assert {*config.own.keep} == {"training.warmup_steps"}
    assert config.training.warmup_steps == 123


def test_other_experiments_and_own_derive_false_change_nothing(words: list[str]) -> None:
    for others in (["experiment=multi30k", *words[1:]], [*words, "own.derive=false"]):
        assert completed(others) == compose(others)


def test_run_that_has_begun_keeps_its_values_that_are_not_given(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = begin(
        completed(words), model__dropout=0.27, training__steps=321, tokenizer__vocab_size=111, own__minutes=7.5
    )
    monkeypatch.setattr("nmt.own_text.prepare.plan", None)  # nothing is planned again
    for config in (completed(words), plan_training(completed(words)), plan_training(compose(words))):
        assert [value_of(config, name) for name in NAMES] == [value_of(begun, name) for name in NAMES]
    config = completed([*words, "training.steps=400", "own.minutes=9"])
    assert (config.training.steps, config.own.minutes, config.model.dropout) == (400, 9, 0.27)


def test_other_text_for_a_run_that_has_begun_is_derived_anew(words: list[str], tmp_path: Path) -> None:
    begin(completed(words), tokenizer__vocab_size=9999)
    files = write_pairs(tmp_path / "other", pairs(60, 2), ("fr", "es"))
    other = [f"data.train={files}", *words[2:], "data.corpus=other"]
    config = completed(["experiment=own", *other])
    assert (config.data.source_lang, config.data.target_lang) == ("fr", "es")
    fresh = completed(["experiment=own", "name=fresh", *other])
    assert config.tokenizer.vocab_size == fresh.tokenizer.vocab_size < 9999
    config = completed(["experiment=own", *words[2:]])  # as `nmt translate` is called
    assert (config.data.source_lang, config.data.target_lang) == ("en", "de")


def test_damaged_settings_of_a_checkpoint_are_left_to_the_command(words: list[str]) -> None:
    config = completed(words)
    begin(config)
    newest = RunLayout(config.run_folder).newest_checkpoint()
    assert newest
    (newest / "config.yaml").write_text("a: [", encoding="utf-8")
    assert value_of(completed(words), "training.steps") == value_of(compose(words), "training.steps")


def test_nothing_is_derived_if_the_target_side_is_no_text(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    trees = ["data.target_lang=trees", "tokenizer.joint=false", "model.tie_embeddings=false"]
    config = completed([*words, *trees, "training.valid_sentences=0"])
    assert plan_training(config) == config
    assert config.tokenizer.vocab_size == compose(words).tokenizer.vocab_size
    assert "because the target side is trees" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("own.minutes=-1", "own.minutes=-1.0 must be at least 0"),
        ("own.minutes=nan", "own.minutes=nan must be"),
        ("own.keep=[training.step]", "did you mean training.steps?"),
    ],
)
def test_values_that_make_no_sense_are_refused_in_one_line(words: list[str], given: str, said: str) -> None:
    assert said in refuse(["data", *words, given])


def test_empty_text_is_refused_in_one_line_by_data(words: list[str], tmp_path: Path) -> None:
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text("")
    assert "is empty: check data.train" in refuse(["data", *words])
