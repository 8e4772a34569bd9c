"""The whole chain as one command."""

from functools import partial
from importlib import import_module

import pytest

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


def test_the_chain_stops_at_the_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: Config) -> None:
        raise SystemExit(143)  # as training does after a signal

    monkeypatch.setattr(import_module("nmt.commands.data"), "run", lambda _: None)
    monkeypatch.setattr(import_module("nmt.commands.train"), "run", stop)
    with pytest.raises(SystemExit):
        main(["all"])
