"""The whole chain as one command."""

from functools import partial
from importlib import import_module

import pytest
from sacrebleu.tokenizers import tokenizer_ja_mecab

from nmt.cli import main
from nmt.commands import COMMANDS
from nmt.commands.chain import CHAIN
from nmt.config.compose import compose
from nmt.config.tree import Config


def test_all_runs_the_commands_in_turn_with_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Config]] = []

    def record(name: str, config: Config) -> None:
        seen.append((name, config))

    for name in CHAIN:
        monkeypatch.setattr(import_module(COMMANDS[name].module), "run", partial(record, name))
    assert main(["all", "experiment=multi30k"]) == 0
    assert [name for name, _ in seen] == ["data", "train", "average", "eval", "report"]
    assert all(config == compose(["experiment=multi30k"]) for _, config in seen)


def test_of_several_processes_one_writes_what_they_do_not_make_together(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    for name in CHAIN:
        monkeypatch.setattr(import_module(COMMANDS[name].module), "run", lambda _, name=name: seen.append(name))
    monkeypatch.setattr("nmt.commands.chain._wait_for_all", lambda _: seen.append("wait"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert main(["all", "experiment=multi30k"]) == 0
    assert seen == ["data", "train", "wait", "eval"]
    seen.clear()
    monkeypatch.setenv("RANK", "0")
    assert main(["all", "experiment=multi30k"]) == 0
    assert seen == ["data", "train", "average", "wait", "eval", "report"]


def test_a_missing_tokenizer_of_bleu_is_refused_before_the_text_is_prepared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    monkeypatch.setattr(import_module("nmt.commands.data"), "run", lambda _: pytest.fail("it prepares text"))
    assert main(["all", "data.target_lang=ja"]) == 2
    assert capsys.readouterr().err.startswith("nmt: BLEU needs the tokenizer ja-mecab, which is not installed: ")


def test_the_chain_stops_at_the_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: Config) -> None:
        raise SystemExit(143)  # as training does after a signal

    monkeypatch.setattr(import_module("nmt.commands.data"), "run", lambda _: None)
    monkeypatch.setattr(import_module("nmt.commands.train"), "run", stop)
    with pytest.raises(SystemExit):
        main(["all"])
