"""Which runs take tuned settings, and what happens with files that do not fit or are damaged."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from nmt.config.keys import value_of, with_values
from nmt.config.schema import Config, ModelConfig, PathsConfig, RuntimeConfig
from nmt.errors import ConfigError, UserError
from nmt.features.tuning.apply import FILE, has_begun, take_tuned
from nmt.features.tuning.command import wanted_choices
from nmt.features.tuning.record import fingerprint, read_tuned, tuned_file, write_tuned
from nmt.measuring.choices import CHOICES, TUNABLE, Situation, open_choices
from nmt.measuring.search import Outcome, Row, Value
from nmt.runs.layout import RunLayout

CHOSEN: dict[str, Value] = {"runtime.precision": "fp32", "runtime.parallel": 1, "runtime.compile": True}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(
        model=ModelConfig(layers=1, d_model=16, d_ff=32, heads=2),
        runtime=RuntimeConfig(device="cpu"),
        paths=PathsConfig(data=str(tmp_path / "data"), outputs=str(tmp_path / "outputs")),
    )


def write(config: Config, settings: dict[str, Value] = CHOSEN, devices: int = 1) -> Path:
    found = fingerprint(config, devices)
    path = tuned_file(config, found)
    write_tuned(path, found, Outcome(settings, [Row("default", None, 1234.5, 1.0)]), 2048)
    return path


def begin(config: Config) -> None:
    """Make the run look as if it had saved a checkpoint."""
    RunLayout(config.run_folder).checkpoint(10).mkdir(parents=True)


def values(config: Config) -> dict[str, Value]:
    return {key: value_of(config, key) for key in CHOSEN}


def test_new_run_takes_what_was_tuned_for_it(config: Config) -> None:
    path = write(config)
    taken = take_tuned(config)
    assert values(taken.config) == CHOSEN
    assert str(path) in taken.message
    assert "runtime.precision=fp32 runtime.parallel=1 runtime.compile=true" in taken.message
    assert "\n" not in taken.message


def test_file_names_the_machine_and_lists_the_measurements(config: Config) -> None:
    path = write(config)
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content["settings"] == CHOSEN
    assert content["table"][0]["tokens_per_second"] == 1234.5
    assert content["measured_with_batch_tokens"] == 2048
    assert content["fingerprint"]["model.d_model"] == 16
    assert path.parent == Path(config.paths.outputs) / "tuned"
    assert path.suffix == ".yaml"


@pytest.mark.parametrize(("key", "given"), [("runtime.parallel", 2), ("runtime.compile", False)])
def test_settings_that_are_given_win(config: Config, key: str, given: Value) -> None:
    write(config)
    taken = take_tuned(with_values(config, {key: given}))
    assert value_of(taken.config, key) == given
    assert values(taken.config) == {**CHOSEN, key: given}
    assert f"{key}=" not in taken.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.d_model", 32),
        ("training.batch_tokens", 1000),
        ("tokenizer.vocab_size", 99),
        ("runtime.precision", "bf16"),
    ],
)
def test_run_with_another_model_batch_or_precision_takes_nothing(config: Config, key: str, value: Value) -> None:
    write(config)
    other = with_values(config, {key: value})
    assert (take_tuned(other).config, take_tuned(other).message) == (other, "")


def test_run_on_another_number_of_devices_takes_nothing(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    write(config)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert take_tuned(config).config == config


def begin_training(config: Config) -> None:
    begin_run = take_tuned(config).begin
    assert begin_run is not None
    begin_run(config)


def test_run_takes_nothing_if_tuning_is_off(config: Config) -> None:
    write(config)
    off = with_values(config, {"runtime.tuned": "off"})
    assert (take_tuned(off).config, take_tuned(off).message) == (off, "")


def test_run_without_tuned_settings_is_silent_unless_they_are_required(config: Config) -> None:
    assert (take_tuned(config).config, take_tuned(config).message) == (config, "")
    with pytest.raises(UserError, match="run `nmt tune` with the same settings first"):
        take_tuned(with_values(config, {"runtime.tuned": "required"}))


def test_resumed_run_keeps_the_settings_that_it_began_with(config: Config) -> None:
    write(config)
    begin_training(config)
    begin(config)
    write(config, {"runtime.parallel": 4})
    assert values(take_tuned(config).config) == CHOSEN


def test_run_that_began_without_tuned_settings_resumes_without_them(config: Config) -> None:
    begin_training(config)
    begin(config)
    write(config)
    assert (take_tuned(config).config, take_tuned(config).message) == (config, "")
    with pytest.raises(UserError, match="began without tuned settings"):
        take_tuned(with_values(config, {"runtime.tuned": "required"}))


def test_new_run_does_not_keep_the_settings_of_an_earlier_one(config: Config) -> None:
    path = write(config)
    begin_training(config)
    assert (config.run_folder / FILE).exists()
    path.unlink()
    begin_training(config)
    assert not (config.run_folder / FILE).exists()


def test_run_has_begun_only_with_the_checkpoint_of_a_step(config: Config) -> None:
    assert not has_begun(config)
    layout = RunLayout(config.run_folder)
    (layout.checkpoints / "averaged").mkdir(parents=True)
    (layout.checkpoints / "step-00000010.0123456789ab.partial").mkdir()
    assert not has_begun(config)
    begin(config)
    assert has_begun(config)


def changed_fingerprint(text: str) -> str:
    return text.replace("cores: ", "cores: 9")


DAMAGES: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "not YAML": lambda _: "a: [",
    "a list": lambda _: "- 1\n",
    "binary": lambda text: text + "\0",
    "cut": lambda text: text[: text.index("settings:")],
    "unknown setting": lambda text: text.replace("runtime.parallel:", "paths.outputs:"),
    "another type": lambda text: text.replace("runtime.parallel: 1", "runtime.parallel: true"),
    "impossible value": lambda text: text.replace("runtime.parallel: 1", "runtime.parallel: -1"),
    "no choice": lambda text: text.replace("fp32", "fp8"),
    "aliases": lambda text: f"a: &a [1]\nb: *a\n{text}",
    "a Python object": lambda text: text.replace("runtime.parallel: 1", "runtime.parallel: !!python/name:os.system"),
    "deep": lambda _: "[" * 5000,
    "too large": lambda text: text + "#" * 300_000,
    "another machine": changed_fingerprint,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_file_that_does_not_fit_is_a_line_and_not_an_end(config: Config, damage: Callable[[str], str]) -> None:
    path = write(config)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    taken = take_tuned(config)
    assert taken.config == config
    assert taken.is_warning
    assert taken.message.startswith("warning: ")
    assert taken.message.isprintable()
    with pytest.raises(UserError):
        take_tuned(with_values(config, {"runtime.tuned": "required"}))


def test_file_that_cannot_be_read_is_a_line_and_not_an_end(config: Config) -> None:
    path = write(config)
    path.unlink()
    path.mkdir()
    assert take_tuned(config).message.startswith("warning: ")


def test_foreign_file_says_how_it_differs(config: Config) -> None:
    path = write(config)
    text = path.read_text(encoding="utf-8").replace("model.d_model: 16", "model.d_model: 512")
    path.write_text(text, encoding="utf-8")
    assert "model.d_model was 512 and is 16" in take_tuned(config).message


def test_file_is_read_as_it_was_written(config: Config) -> None:
    path = write(config)
    tuned = read_tuned(path, config)
    assert tuned.settings == CHOSEN
    assert tuned.fingerprint == fingerprint(config, 1)
    assert tuned.text == path.read_text(encoding="utf-8")


def test_only_settings_that_are_left_open_are_chosen(config: Config) -> None:
    everything = [choice.setting for choice in open_choices(config, "cpu")]
    assert everything[:3] == ["runtime.precision", "runtime.threads", "runtime.parallel"]
    given = with_values(config, {"runtime.precision": "bf16", "runtime.compile": False})
    assert [choice.setting for choice in open_choices(given, "cpu")] == ["runtime.threads", "runtime.parallel"]


def test_named_choices_are_made_alone(config: Config) -> None:
    named = with_values(config, {"tune.choices": ["runtime.parallel"]})
    assert [choice.setting for choice in open_choices(named, "cpu", wanted_choices(named))] == ["runtime.parallel"]
    wrong = with_values(config, {"tune.choices": ["runtime.paralel"]})
    with pytest.raises(ConfigError, match=r"did you mean runtime\.parallel\?"):
        wanted_choices(wrong)


def test_device_without_choices_has_none(config: Config) -> None:
    assert open_choices(config, "mps") == []


def test_every_candidate_is_a_valid_value_of_its_setting(config: Config) -> None:
    situation = Situation(precision="bf16", threads=8, parallel=4, share=25_000, compiled=True)
    compiled = with_values(config, {"runtime.compile": True})
    for choice in (choice for choices in CHOICES.values() for choice in choices):
        for candidate in choice.candidates(situation):
            assert type(candidate) is choice.type
            assert candidate != choice.open_value
            with_values(compiled, {choice.setting: candidate})


def test_candidates_for_a_cpu_depend_on_its_threads() -> None:
    situation = Situation(precision="fp32", threads=6, parallel=3, share=25_000)
    assert TUNABLE["runtime.threads"].candidates(situation) == [3, 1]
    assert TUNABLE["runtime.parallel"].candidates(situation) == [1, 2]
    assert TUNABLE["runtime.precision"].candidates(situation) == ["bf16"]


def test_micro_batches_on_a_gpu_are_not_made_tiny() -> None:
    large, small = (Situation(precision="bf16", threads=8, parallel=1, share=share) for share in (25_000, 5000))
    assert TUNABLE["training.device_tokens"].candidates(large) == [12_500, 6250]
    assert TUNABLE["training.device_tokens"].candidates(small) == [2500]


def test_cuda_graphs_are_tried_only_for_a_compiled_model() -> None:
    situation = Situation(precision="bf16", threads=8, parallel=1, share=25_000, compiled=True)
    candidates = TUNABLE["runtime.cuda_graphs"].candidates
    assert candidates(situation) == [True]
    assert candidates(situation._replace(compiled=False)) == []


def test_given_setting_that_contradicts_a_tuned_one_is_a_line_and_not_an_end(config: Config) -> None:
    longest = config.data.max_pieces
    write(config, {"training.device_tokens": longest + 1})
    given = with_values(config, {"data.max_pieces": longest + 1})
    taken = take_tuned(given)
    assert taken.config == given
    assert f"training.device_tokens={longest + 1} is too small for one sentence" in taken.message
