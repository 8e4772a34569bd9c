"""Tests of several runs by one command."""

import pickle
import re
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.core_plugins import basic_launcher
from hydra.core.utils import JobReturn, run_job
from hydra.plugins.sweeper import Sweeper

from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.multirun import JobError, first_run, multirun
from nmt.errors import ConfigError, UserError


def test_outputs_folder_may_have_any_name(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    folder = tmp_path / "it's, a\\'b [folder] = {1} and ends with a backslash\\"
    multirun(seen.append, ["batch.step=1,2"], outputs=str(folder))
    assert seen == [["batch.step=1"], ["batch.step=2"]]
    assert (folder / "multirun").is_dir()


@pytest.mark.parametrize("words", [[], ["paths.outputs={}/made,{}/other"]])
def test_logs_are_in_the_outputs_of_the_first_run(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    multirun(lambda _: None, ["batch.step=1,2", *(word.format(tmp_path, tmp_path) for word in words)])
    assert [each.name for each in tmp_path.iterdir()] == (["made"] if words else ["outputs"])
    assert next(tmp_path.iterdir()).joinpath("multirun").is_dir()


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["seed=3,4", "name=a"], ["seed=3", "name=a"]),
        (["training.steps=range(5,9)"], ["training.steps=5"]),
        (["experiment=glob(multi*)"], ["experiment=multi30k"]),
        (["data.train=[a,b],[c,d]", "++data.mixture.x.weight=1,2"], ["data.train=[a,b]", "++data.mixture.x.weight=1"]),
    ],
)
def test_the_first_run_has_the_first_values(words: list[str], first: list[str]) -> None:
    assert first_run(words) == first


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["batch.step=9", "seed=5", "batch.step=1,2"], ["seed=5", "batch.step=1,2"]),
        (["batch.step=1,2", "batch.step=9", "seed=5"], ["batch.step=9", "seed=5"]),
        (["batch.step=1,2", "seed=5", "batch.step=3,4"], ["seed=5", "batch.step=3,4"]),
    ],
)
def test_a_sweeper_gets_the_last_of_several_overrides_of_a_setting(
    words: list[str], left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of Optuna takes the one value, not the range, in whichever order they are."""
    seen: list[str] = []
    monkeypatch.setattr("nmt.config.multirun._run_hydra", lambda args, **_: seen.extend(args.overrides))
    multirun(lambda _: None, words, outputs=str(tmp_path))
    assert [each for each in seen if each.startswith(("batch", "seed"))] == left


@pytest.mark.parametrize("words", [["batch.step=1,"], ["experiment=multi30k,["]])
def test_words_that_cannot_be_read_are_refused_in_one_line(words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        multirun(lambda _: None, words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "corpora"),
    [
        (["tokenizer.vocab_size=100,200"], ["toy-tokenizer.vocab_size_100", "toy-tokenizer.vocab_size_200"]),
        (["data.max_words=9,10", "model.dropout=0.1"], ["toy-data.max_words_9", "toy-data.max_words_10"]),
        (["tokenizer=bpe,unigram"], ["toy-tokenizer_bpe", "toy-tokenizer_unigram"]),
        (["model.dropout=0.1,0.2"], ["toy", "toy"]),
        (["data.check_counts=true,false"], ["toy", "toy"]),
        (["seed=1,2"], ["toy", "toy"]),
        (["++data.mixture.more.train=[a,b]", "++data.mixture.more.weight=1,2"], ["toy", "toy"]),
        (["data.corpus=a,b"], ["a", "b"]),
    ],
)
def test_each_prepared_text_of_a_sweep_has_a_folder_of_its_own(
    words: list[str], corpora: list[str], tmp_path: Path
) -> None:
    of_all = [] if words[0].startswith("data.corpus") else ["data.corpus=toy"]
    seen: list[str] = []
    multirun(lambda run: seen.append(compose(run).data.corpus), [*of_all, *words], outputs=str(tmp_path))
    assert seen == corpora


@pytest.mark.parametrize("word", ["name=a,b", "paths.data=a,b", "decoding.beam=1,4"])
def test_a_search_over_what_does_not_change_the_result_is_refused(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "-m", word, "hydra.sweeper._target_=elsewhere.Sweeper"]) == 2
    error = capsys.readouterr().err
    assert f"a search cannot vary {word.partition('=')[0]}: " in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyError("key"), UserError("change it")])
def test_the_error_of_a_run_is_raised_as_it_is(tmp_path: Path, error: Exception) -> None:
    def fail(_: list[str]) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        multirun(fail, ["batch.step=1,2"], outputs=str(tmp_path))
    assert caught.value is error
    assert "fail" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_a_failed_run_does_not_end_a_sweep(tmp_path: Path) -> None:
    seen: list[str] = []

    def job(overrides: list[str]) -> None:
        seen.append(overrides[0])
        if overrides[0] == "batch.step=2":
            raise UserError("step 2 is wrong")

    with pytest.raises(UserError, match="step 2 is wrong"):
        multirun(job, ["batch.step=1,2,3"], outputs=str(tmp_path))
    assert seen == ["batch.step=1", "batch.step=2", "batch.step=3"]


def test_the_traceback_of_a_run_in_another_process_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(**arguments: Any) -> JobReturn:
        result: JobReturn = pickle.loads(pickle.dumps(run_job(**arguments)))  # as from another process
        return result

    def fail(_: list[str]) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(basic_launcher, "run_job", elsewhere)
    with pytest.raises(JobError, match=r'(?s)test_multirun\.py", line \d+, in fail.*ValueError: a bug'):
        multirun(fail, ["batch.step=1,2"], outputs=str(tmp_path))


def test_settings_of_a_mixture_may_have_several_values(tmp_path: Path) -> None:
    weights: list[float] = []
    multirun(
        lambda words: weights.append(compose(words).data.mixture["more"]["weight"]),
        ["data.mixture.more.train=[a.en,a.de]", "data.mixture.more.weight=1,2"],
        outputs=str(tmp_path),
    )
    assert weights == [1, 2]


def test_runs_with_several_seeds_have_names_of_their_own(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    multirun(seen.append, ["seed=1,2", "experiment=demo"], outputs=str(tmp_path))
    assert [compose(overrides).name for overrides in seen] == ["demo-seed1", "demo-seed2"]
    assert [compose(overrides).seed for overrides in seen] == [1, 2]


def names_of(words: list[str], tmp_path: Path) -> list[str]:
    names: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sweeper, "validate_batch_is_legal", lambda *_: None)  # Hydra composes each run twice
        multirun(lambda job: names.append(compose(job).name), words, outputs=str(tmp_path))
    return names


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["model.dropout=0.10,0.3"], ["model.dropout_0.1", "model.dropout_0.3"]),
        (
            ["training.warmup_steps=300", "seed=2,3", "training.steps=500,600", "model.norm=rms"],
            [f"training.steps_{steps}-seed{seed}" for seed in (2, 3) for steps in (500, 600)],
        ),
        (["training=base,small"], ["training_base", "training_small"]),
        (["name=demo", "experiment=demo,multi30k"], ["experiment_demo", "experiment_multi30k"]),
        (["++data.mixture.more.train=[a.en,a.de]", "data.mixture.more.weight=1,2"],
         ["data.mixture.more.weight_1", "data.mixture.more.weight_2"]),
    ],
)  # fmt: skip
def test_runs_of_a_sweep_have_their_own_values_in_their_names(
    words: list[str], expected: list[str], tmp_path: Path
) -> None:
    base = "demo" if "name=demo" in words else compose([]).name
    assert names_of(words, tmp_path) == [f"{base}-{each}" for each in expected]


def test_long_or_unusual_values_give_short_plain_and_different_names(tmp_path: Path) -> None:
    words = ["name=folder/base", "seed=1,2", f"data.hub_dataset=a/{'x' * 90},a@{'x' * 91}"]
    names = names_of(words, tmp_path)
    assert len({*names}) == 4
    assert all(re.fullmatch(r"folder/base-[A-Za-z0-9._+-]{30,53}-seed[12]", name) for name in names)
    assert all(compose([f"name={name}"]).name == name for name in names)  # as users type them


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["seed=3", "name=a,b"], ["a", "b"]),
        (["seed=1,2", "name=a,b"], ["a-seed1", "b-seed1", "a-seed2", "b-seed2"]),
        (["experiment=demo,multi30k", "seed=2,3"], ["demo-seed2", "demo-seed3", "multi30k-seed2", "multi30k-seed3"]),
    ],
)
def test_names_that_differ_already_have_no_more_than_they_need(
    words: list[str], expected: list[str], tmp_path: Path
) -> None:
    assert names_of(words, tmp_path) == expected


@pytest.mark.parametrize("word", ["decoding.beam=1,4", "checkpoint=last,best"])
def test_settings_that_change_no_weights_do_not_change_the_name(word: str, tmp_path: Path) -> None:
    assert names_of([word, "experiment=demo"], tmp_path) == ["demo"] * 2


def test_precisions_are_trained_as_different_runs_and_scored_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: dict[str, list[str]] = {"train": [], "evaluate": []}
    for module, names in seen.items():
        monkeypatch.setattr(
            import_module(f"nmt.commands.{module}"), "run", lambda config, to=names: to.append(config.name)
        )
    for command in ("train", "eval"):
        assert main([command, "-m", "experiment=demo", "runtime.precision=fp32,bf16"]) == 0
    assert seen == {"train": ["demo-runtime.precision_fp32", "demo-runtime.precision_bf16"], "evaluate": ["demo"] * 2}
