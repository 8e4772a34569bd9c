"""Old names of settings, on the command line and in saved settings."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from nmt.config import renamed
from nmt.config.compose import compose
from nmt.config.conf_folder import groups
from nmt.config.keys import all_keys, value_of
from nmt.config.multirun import multirun
from nmt.config.renamed import RENAMED, rename_overrides, rename_saved
from nmt.config.saved import from_yaml, read_settings, to_yaml
from nmt.config.schema import Config, TranslateConfig

VALUES: dict[str, object] = {
    "device": "h100", "gpus": 8, "rows": ["a1"], "scale": "small", "step": 7, "format": "tsv", "prefix": "begin",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_hints_yet() -> Iterator[None]:
    renamed._hint.cache_clear()
    yield
    renamed._hint.cache_clear()


def written(value: object) -> str:
    return str(value).replace("'", "")


def test_renamed_settings_map_unused_names_to_existing_settings() -> None:
    assert set(VALUES) == set(RENAMED)
    assert set(RENAMED.values()) <= set(all_keys())
    assert not set(RENAMED) & {*all_keys(), *groups()}


@pytest.mark.parametrize("old", RENAMED)
@pytest.mark.parametrize("plus", ["", "++"])
def test_an_old_name_sets_the_new_setting_and_a_hint_names_it(
    old: str, plus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = compose([f"{plus}{old}={written(VALUES[old])}"])
    assert value_of(config, RENAMED[old]) == VALUES[old]
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"nmt: {old}= is now {re.escape(RENAMED[old])}=; [^\n]+\n", said.err)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"source": "demo"}, 7),
        ({"source": "files", "mixture": {"more": {"source": "demo"}}}, 7),
        ({"source": "demo", "seed": 3}, 3),
        ({"source": "files", "mixture": {"more": {"train": ["a.en", "a.de"]}}}, 1),  # no text depends on a seed
    ],
)
def test_saved_settings_without_a_seed_of_the_text_have_that_of_the_run(data: dict[str, Any], expected: int) -> None:
    text = yaml.safe_dump({"seed": 7, "data": data})
    assert read_settings(text).get("data.seed", Config().data.seed) == expected
    config = from_yaml(text)
    assert (config.seed, config.data.seed) == (7, expected)


def test_the_hint_is_printed_once_and_on_the_first_rank_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compose(["step=2"])
    compose(["step=3"])
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("RANK", "1")
    assert compose(["gpus=3"]).describe.gpus == 3
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "override",
    [
        "training.steps=3",
        "describe.device=h100",
        "runtime.device=cpu",
        "input=step=2",
        "steps=3",
        "output=json",
        "step",
    ],
)
def test_other_overrides_stay_as_they_are(override: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rename_overrides([override]) == [override]
    assert capsys.readouterr().err == ""


def test_old_names_work_in_a_multirun() -> None:
    seen: list[list[str]] = []
    multirun(seen.append, ["step=1,2"])
    assert seen == [["batch.step=1"], ["batch.step=2"]]


def test_saved_settings_of_an_older_version_are_read_without_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    text = "name: old\n" + "".join(f"{old}: {written(value)}\n" for old, value in VALUES.items())
    config, settings = from_yaml(text), read_settings(text)
    for old, new in RENAMED.items():
        assert value_of(config, new) == settings[new] == VALUES[old]
        assert old not in settings
    assert config.name == "old"
    assert capsys.readouterr().err == ""


def test_a_new_name_wins_over_an_old_one_in_saved_settings() -> None:
    assert rename_saved({"step": 1, "batch": {"step": 2}}) == {"batch": {"step": 2}}
    assert rename_saved({"step": 1, "batch": 3}) == {"batch": 3}


def test_an_old_name_with_an_escaped_interpolation_stays_text() -> None:
    text = to_yaml(Config(translate=TranslateConfig(prefix="${oc.env:HOME}")))
    moved = re.sub(r"translate:\n  format: text\n  (prefix: [^\n]+)\n", r"\1\ntranslate:\n  format: text\n", text)
    assert "\nprefix: " in moved
    assert from_yaml(moved).translate.prefix == "${oc.env:HOME}"
