"""Table 3 of the paper: its rows, the small scale, and the table with our results."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from nmt.commands.table3 import settings
from nmt.config.compose import compose, options
from nmt.config.schema import Config, DecodingConfig, ModelConfig, PathsConfig, TrainingConfig
from nmt.errors import ConfigError
from nmt.paper.table3 import TABLE_3
from nmt.report.table3 import as_markdown, choose_rows, is_done, read_result, small_scale


def test_every_row_is_an_experiment() -> None:
    assert {f"table3/{name}" for name in TABLE_3} == {
        name for name in options("experiment") if name.startswith("table3/")
    }


def test_rows_are_chosen_in_the_papers_order() -> None:
    assert choose_rows([]) == list(TABLE_3)
    assert choose_rows(["big", "a1"]) == ["a1", "big"]
    with pytest.raises(ConfigError, match=r"no row a9; did you mean a\d\?"):
        choose_rows(["a9"])


@pytest.mark.parametrize("name", [name for name in TABLE_3 if name != "base"])
def test_a_small_row_differs_from_base_in_the_same_settings_as_the_papers_row(name: str) -> None:
    full = [compose([f"experiment=table3/{each}"]) for each in ("base", name)]
    base, row = (settings(each, ["table3.scale=small"]) for each in ("base", name))
    for group in ("model", "training"):
        before, after = (asdict(getattr(config, group)) for config in full)
        shrunk_before, shrunk_after = (asdict(getattr(config, group)) for config in (base, row))
        for key in before:
            if key not in ("save_every", "valid_every", "keep_last"):
                assert (before[key] == after[key]) == (shrunk_before[key] == shrunk_after[key]), key
    widths = [(config.model.key_size / config.model.d_model, config.model.d_ff / config.model.d_model) for config in
              (full[1], row)]  # fmt: skip
    assert widths[0] == widths[1]
    assert row.name == f"table3-small/{name}"


def test_user_overrides_win_over_the_small_scale() -> None:
    assert settings("a1", ["table3.scale=small", "training.steps=7"]).training.steps == 7
    assert settings("a1", ["training.steps=7"]).name == "table3/a1"
    assert small_scale(compose(["experiment=table3/big"]))[0] == "name=table3-small/big"


def finished_row(folder: Path, steps: int = 10) -> Config:
    """Write the files of a trained and scored row; return its settings."""
    config = replace(Config(), name="table3/c1", paths=PathsConfig(outputs=str(folder)))
    config = replace(config, training=TrainingConfig(steps=steps), model=ModelConfig(layers=2))
    (config.run_folder / "eval").mkdir(parents=True)
    scores = {
        "split": "valid", "perplexity": 6.5, "checkpoint": {"name": "averaged", "step": steps},
        **{name: {"score": 22.04, "signature": ""} for name in ("bleu", "chrf", "ter")},
        "bleu_paper": {"score": 23.06, "signature": ""}, "decoding": asdict(config.decoding),
    }  # fmt: skip
    (config.run_folder / "eval" / "valid.json").write_text(json.dumps(scores))
    events = [{"event": "train", "step": 1, "seconds": 3600}, {"event": "valid", "step": 1}]
    events.append({"event": "train", "step": 2, "seconds": 1800})
    (config.run_folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return config


def test_a_row_is_done_only_if_its_last_step_was_scored(tmp_path: Path) -> None:
    config = finished_row(tmp_path)
    assert is_done(config)
    assert not is_done(replace(config, training=TrainingConfig(steps=11)))
    assert not is_done(replace(config, decoding=DecodingConfig(beam=5)))
    assert not is_done(replace(config, name="table3/c2"))


def test_the_table_has_our_results_and_the_papers_in_aligned_columns(tmp_path: Path) -> None:
    lines = as_markdown({"c1": read_result(finished_row(tmp_path), 37_000), "big": None}).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[2] == ["c1", "N 2", "6.50", "6.11", "22.0", "23.1", "23.7", "33.7", "36", "1.500", "-"]
    assert cells[3][2:] == ["-", "4.33", "-", "-", "26.4", "-", "213", "-", "84"]
    assert len({len(line) for line in lines}) == 1
