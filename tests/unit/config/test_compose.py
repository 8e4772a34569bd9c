"""Settings from conf/ and the command line, their saved form, and mistakes in them."""

import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from nmt.config import compose as composing
from nmt.config import saved
from nmt.config.compose import check_effects, compose, given_settings
from nmt.config.conf_folder import conf_folder, groups, options
from nmt.config.data import DataConfig
from nmt.config.keys import all_keys, describe_keys
from nmt.config.saved import from_yaml, to_yaml
from nmt.config.tree import Config
from nmt.errors import ConfigError


@cache
def composed(group: str, option: str) -> Config:
    """Return the settings of a shipped file, which several tests need; composing takes a tenth of a second."""
    return compose([f"{group}={option}", *NEEDS.get((group, option), [])])


def flat(config: Config) -> dict[str, object]:
    return saved.flatten(dataclasses.asdict(config))


def differences(a: Config, b: Config) -> dict[str, tuple[object, object]]:
    return saved.differences(flat(a), flat(b))


def error_message(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        compose(overrides)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_overrides_settings_have_the_defaults_of_the_schema() -> None:
    assert compose([]) == Config()


def test_the_result_is_frozen() -> None:
    config = compose(["training.steps=3"])
    assert config.training.steps == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.training.steps = 4  # type: ignore[misc]


def test_experiments_override_groups_and_the_command_line_overrides_both() -> None:
    assert compose(["model=big"]).model.dropout == 0.3
    assert compose(["model=big", "experiment=wmt14_en_fr_big"]).model.dropout == 0.1
    assert compose(["model.dropout=0.2", "experiment=wmt14_en_fr_big"]).model.dropout == 0.2
    assert compose(["experiment=multi30k", "data=demo"]).data.corpus == "demo"


TREES_NEED = ["tokenizer.joint=false", "model.tie_embeddings=false", "training.valid_sentences=0"]
NEEDS = {
    ("tokenizer", "separate"): ["model.tie_embeddings=false"],
    ("tokenizer", "trees"): ["model.tie_embeddings=false"],
    ("data", "wsj"): TREES_NEED,
    ("data", "demo_trees"): TREES_NEED,
}
"""Files that only compose with other settings."""


@pytest.mark.parametrize(("group", "option"), [(group, option) for group in groups() for option in options(group)])
def test_every_shipped_file_composes(group: str, option: str) -> None:
    needs = NEEDS.get((group, option), [])
    config = composed(group, option)
    if group == "experiment":
        assert config.name == option
    else:
        changed = set(differences(Config(), config)) - {need.partition("=")[0] for need in needs}
        assert all(key.startswith(f"{group}.") for key in changed)


CHOSEN = {
    group: option
    for entry in yaml.safe_load((conf_folder() / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    if isinstance(entry, dict)
    for group, option in entry.items()
}
"""The files that the root of the settings chooses, by group."""


@pytest.mark.parametrize("group", [group for group in groups() if group != "experiment"])
def test_chosen_files_show_defaults_and_others_only_differences(group: str) -> None:
    defaults = flat(Config())
    for option in options(group):
        stated = yaml.safe_load((conf_folder() / group / f"{option}.yaml").read_text(encoding="utf-8"))
        repeated = {key for key, value in stated.items() if value == defaults[f"{group}.{key}"]}
        assert repeated == (set(stated) if option == CHOSEN[group] else set()), option


def test_the_default_experiment_is_the_default() -> None:
    assert composed("experiment", str(CHOSEN["experiment"])) == Config()


BIG: dict[str, object] = {
    "model.d_model": 1024,
    "model.d_ff": 4096,
    "model.heads": 16,
    "model.dropout": 0.3,
    "training.steps": 300_000,
    "training.save_every": 600,
    "training.valid_every": 3000,
    "training.keep_last": 20,
}
TABLE3: dict[str, dict[str, object]] = {
    "base": {},
    "a1": {"model.heads": 1},
    "a2": {"model.heads": 4},
    "a3": {"model.heads": 16},
    "a4": {"model.heads": 32},
    "b1": {"model.d_k": 16},
    "b2": {"model.d_k": 32},
    "c1": {"model.layers": 2},
    "c2": {"model.layers": 4},
    "c3": {"model.layers": 8},
    "c4": {"model.d_model": 256},
    "c5": {"model.d_model": 1024},
    "c6": {"model.d_ff": 1024},
    "c7": {"model.d_ff": 4096},
    "d1": {"model.dropout": 0.0},
    "d2": {"model.dropout": 0.2},
    "d3": {"training.label_smoothing": 0.0},
    "d4": {"training.label_smoothing": 0.2},
    "e": {"model.positions": "learned"},
    "big": BIG,
}
WIDTHS = {
    "a1": (512, 512),
    "a2": (128, 128),
    "a3": (32, 32),
    "a4": (16, 16),
    "b1": (16, 64),
    "b2": (32, 64),
    "c4": (32, 32),
    "c5": (128, 128),
}


def changes(experiment: str) -> dict[str, object]:
    return {key: value for key, (_, value) in differences(Config(), composed("experiment", experiment)).items()}


PAPER = [name for name in options("experiment") if name.startswith(("wmt14_", "table3/", "parsing/wsj"))]


def test_only_the_papers_experiments_fix_the_number_of_averaged_checkpoints() -> None:
    for name in options("experiment"):
        expected = (20 if name.startswith("wmt14_") and name.endswith("_big") else 5) * (name in PAPER)
        assert composed("experiment", name).averaging.last == expected, name


def test_there_is_an_experiment_for_each_of_the_twenty_rows_of_table_3() -> None:
    assert {f"table3/{row}" for row in TABLE3} == {name for name in options("experiment") if name.startswith("table3/")}
    assert len(TABLE3) == 20


@pytest.mark.parametrize("row", TABLE3)
def test_a_row_of_table_3_changes_exactly_what_the_paper_changes(row: str) -> None:
    scoring: dict[str, object] = {"name": f"table3/{row}", "checkpoint": "last", "evaluation.splits": ["valid"]}
    assert changes(f"table3/{row}") == scoring | TABLE3[row]
    model = composed("experiment", f"table3/{row}").model
    assert (model.key_size, model.value_size) == WIDTHS.get(row, (64, 64))


def test_the_other_runs_of_the_paper_change_exactly_these_settings() -> None:
    french = {"data.corpus": "wmt14_en_fr", "data.target_lang": "fr", "data.hub_config": "fr-en"} | {
        "data.drop_copies": True,
        "data.max_ratio": 1.5,
        "data.deduplicate": True,
        "tokenizer.vocab_size": 32_000,
    }
    big = BIG | {"averaging.last": 20}
    del (big_french := big | french)["model.dropout"]
    assert changes("wmt14_en_de_base") == {}
    assert changes("wmt14_en_de_big") == {"name": "wmt14_en_de_big"} | big
    assert changes("wmt14_en_fr_base") == {"name": "wmt14_en_fr_base"} | french
    assert changes("wmt14_en_fr_big") == {"name": "wmt14_en_fr_big"} | big_french


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("training.stepz=3", "there is no setting training.stepz; did you mean training.steps?"),
        ("+trainig.steps=3", "there is no setting trainig.steps; did you mean training.steps?"),
        ("steps=3", "did you mean training.steps?"),
        ("training.lr=3", "there is no setting training.lr; it is training.learning_rate here: peak learning rate"),
        ("training=small,base", "gives several values and a run takes one: choose one, or add -m"),
        ("data.train=a,b", "write a list as data.train=[a,b], or add -m"),
        ("xyzzy=3", "`nmt COMMAND --help=all` lists the settings"),
        ("averaging=5", "averaging; it is a group of settings: set averaging.last"),
        ("model@model=big", "there is no setting model@model"),
        ("+training.steps=3", "write it without the +"),
        ("~training.steps", "settings cannot be removed"),
        ("experiment=tabel3/a1", "there is no experiment=tabel3/a1; did you mean experiment=table3/a1?"),
        ("model=enormous", "choose from base, big, modern, small, tiny"),
        ("training.steps=abc", "training.steps=abc must be a whole number"),
        ("model.dropout=high", "model.dropout=high must be a number"),
        ("runtime.cuda_graphs=perhaps", "runtime.cuda_graphs=perhaps must be true, false or null"),
        ("data.train=a", "data.train=a must be a list, such as [a,b]"),
        ("training.steps=null", "training.steps=null must be a whole number"),
        ("name=null", "name=null must be text"),
        ("name=${nowhere}", "name=${nowhere} cannot be resolved: Interpolation key 'nowhere' not found"),
        ("", "cannot read ''"),
        ("input=a b(c", "quote a value with special characters"),
        ("--steps", "settings are written key=value, without dashes"),
        ("model.heads=7", "model.heads=7 does not divide model.d_model=512"),
        ("training.batch_tokens=-1", "training.batch_tokens=-1 must be at least 1"),
        ("averaging.last=9", "averaging.last=9 is more than the training.keep_last=5"),
        ("training.learning_rate=nan", "training.learning_rate=nan must be at least 0"),
        ("tokenizer=separate", "model.tie_embeddings=true needs tokenizer.joint=true"),
        ("model.d_model=9223372036854775808", "model.d_model=9223372036854775808 must be below 2^63"),
        ("tokenizer.vocab_size=1000000000", "tokenizer.vocab_size=1000000000 must be at least 8 and at most 10000000"),
        ("name=../elsewhere", "name=../elsewhere must be one or more plain names of folders"),
        ("evaluation.splits=[test,valid,test]", "evaluation.splits names test twice"),
    ],
)
def test_a_mistake_is_reported_in_one_line(override: str, words: str) -> None:
    assert words in error_message(override)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "decoding.temperature=0.5",
            "decoding.temperature has no effect with decoding.strategy=beam: leave it out, or set "
            "decoding.strategy=sample or decoding.strategy=mbr",
        ),
        ("training.muon_rate=9", "has no effect with training.optimizer=adam"),
        ("model.max_positions=90", "has no effect with model.positions=sinusoidal"),
    ],
)
def test_a_setting_without_effect_is_refused(override: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        check_effects(compose([override]), given_settings([override]))
    check_effects(compose([override]), [])  # not given


@pytest.mark.parametrize(
    "overrides",
    [
        ["decoding.temperature=0.5", "decoding.strategy=mbr"],
        ["decoding.strategy=sample", "decoding.beam=4"],  # the default
        ["decoding.temperature=1"],
    ],
)
def test_settings_that_have_an_effect_or_their_defaults_are_not_refused(overrides: list[str]) -> None:
    check_effects(compose(overrides), given_settings(overrides))


def test_a_sample_has_no_beam() -> None:
    words = ["decoding.strategy=sample", "decoding.beam=8"]
    with pytest.raises(ConfigError, match=r"decoding\.beam has no effect with decoding\.strategy=sample"):
        check_effects(compose(words), given_settings(words))


def test_the_last_of_two_overrides_wins() -> None:
    assert compose(["experiment=demo", "experiment=multi30k"]).name == "multi30k"
    assert compose(["training.steps=3", "training.steps=4"]).training.steps == 4


def test_the_message_quotes_the_last_of_two_overrides() -> None:
    assert error_message("training.steps=3", "training.steps=abc").startswith("training.steps=abc")


@pytest.fixture
def other_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("defaults:\n  - schema\n  - _self_\n  - model: mine\n", encoding="utf-8")
    monkeypatch.setattr(composing, "conf_folder", lambda: tmp_path)
    return tmp_path / "model" / "mine.yaml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("layerz: 3", "conf/model/mine.yaml: there is no setting model.layerz; did you mean model.layers?"),
        ("layers: abc", "conf/model/mine.yaml: model.layers must be a whole number (Value 'abc'"),
        ("layers: [1", "mine.yaml"),
        ("heads: 7", "model.heads=7 does not divide model.d_model=512"),
    ],
)
def test_a_mistake_in_a_file_names_the_file(other_conf: Path, text: str, words: str) -> None:
    other_conf.write_text(text + "\n", encoding="utf-8")
    assert words in error_message()


def test_saved_settings_are_read_back_unchanged() -> None:
    config = compose(["experiment=table3/b1", "input='a: b, [c] = ü'", "training.adam_eps=1e-9"])
    assert from_yaml(to_yaml(config)) == config


@pytest.mark.parametrize(
    "text", ["a${oc.env:TOKEN}", r"a\${name}", r"\\${x}", r"C:\${x}\\", "${", "$", r"\\", "${a}${b}\\", "'${x}\""]
)
def test_text_that_looks_like_an_interpolation_is_saved_as_text(text: str) -> None:
    config = dataclasses.replace(Config(), input=text, data=DataConfig(train=[text, "b"]))
    assert from_yaml(to_yaml(config)) == config
    found = saved.read_settings(to_yaml(config))
    assert (found["input"], found["data.train"]) == (text, [text, "b"])


@pytest.mark.parametrize(
    "text",
    [
        "name: x\ndata:\n  corpus: ${oc.env:TOKEN}\n",
        "data:\n  train: [a, 'b${oc.env:TOKEN}']\n",
        "data:\n  mixture: {a: {train: ['${oc.env:TOKEN}']}}\n",
        "name: ${data.corpus}\n",
    ],
)
def test_saved_settings_cannot_read_the_environment(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    found = saved.read_settings(text)
    assert found == saved.flatten(yaml.safe_load(text))
    assert "secret" not in to_yaml(from_yaml(text))


def test_a_setting_missing_from_saved_settings_takes_its_default() -> None:
    assert from_yaml("training:\n  steps: 7\n").training.steps == 7
    assert from_yaml("training:\n  steps: 7\n").model == Config().model


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("training:\n  stepz: 7\n", "there is no setting training.stepz; did you mean training.steps?"),
        ("training:\n  steps: many\n", "training.steps must be a whole number, not 'many'"),
        ("training: [1\n", "line"),
        ("- 1\n- 2\n", "the saved settings are empty or not a list of"),
        ("", "the saved settings are empty or not a list of"),
        ("3", "the saved settings are empty"),
        ("training: 3\n", "training is a group of settings, and cannot be 3"),
    ],
)
def test_damaged_yaml_is_reported_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_yaml(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_differences_list_the_settings_that_differ() -> None:
    config = compose(["training.steps=3", "data.train=[a,b]"])
    assert differences(Config(), Config()) == {}
    assert differences(Config(), config) == {
        "data.train": (["train"], ["a", "b"]),
        "training.steps": (100_000, 3),
    }


def test_keys_are_found_by_group_and_by_name() -> None:
    assert [key.name for key in describe_keys("averaging")] == ["averaging.last"]
    (steps,) = describe_keys("training.steps")
    assert (steps.type, steps.default, steps.meaning) == ("int", 100_000, "Number of updates of the weights.")
    (train,) = describe_keys("data.train")
    assert (train.type, train.default) == ("list[str]", ["train"])
    assert describe_keys("trainin") == []


def test_only_these_groups_have_settings_that_are_fixed_on_resume() -> None:
    fixed = {name.partition(".")[0] for name, key in all_keys().items() if not key.adjustable}
    assert fixed == {"data", "tokenizer", "model", "training", "noise", "own", "seed"}
