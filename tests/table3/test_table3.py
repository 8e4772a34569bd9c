"""Table 3 of the paper: its rows, the smaller scales, the table with our results, and what it shows."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.cli import main
from nmt.config.compose import compose
from nmt.config.conf_folder import options
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.saved import to_yaml
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config, PathsConfig
from nmt.errors import ConfigError
from nmt.evaluation.paper_table3 import TABLE_3
from nmt.runs.checkpoints import Checkpoints
from nmt.table3.command import settings
from nmt.table3.effects import effects, pooled_spread
from nmt.table3.findings import findings, spearman
from nmt.table3.table import RunResult, as_markdown, choose_rows, effects_as_markdown, is_done, read_result


def test_every_row_is_an_experiment() -> None:
    assert {f"table3/{name}" for name in TABLE_3} == {
        name for name in options("experiment") if name.startswith("table3/")
    }


def test_processes_of_torchrun_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nmt.table3.command.data.run", lambda _: pytest.fail("text is prepared"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    codes = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        codes.append(main(["table3", "table3.scale=small"]))
    assert codes == [2, 0]  # torchrun fails if one process does
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "nmt: table3 was started by torchrun, but starts it for each row: start it alone, it uses all GPUs"


def test_rows_are_chosen_in_the_papers_order() -> None:
    assert choose_rows([]) == list(TABLE_3)
    assert choose_rows(["big", "a1"]) == ["a1", "big"]
    with pytest.raises(ConfigError, match=r"no row a9; did you mean a\d\?"):
        choose_rows(["a9"])


SMALL = [
    pytest.param(name, "small", marks=() if name.endswith("1") or name in ("c4", "c6", "d3", "e") else pytest.mark.slow)
    for name in TABLE_3
    if name != "base"
]
"""Rows at the smallest scale; in the quick suite, one for each setting that the paper changes."""


@pytest.mark.parametrize(("name", "scale"), [*SMALL, ("a1", "multi30k"), ("big", "multi30k")])
def test_a_shrunk_row_differs_from_base_in_the_same_settings_as_the_papers_row(name: str, scale: str) -> None:
    full = [compose([f"experiment=table3/{each}"]) for each in ("base", name)]
    base, row = (settings(each, 1, [f"table3.scale={scale}"]) for each in ("base", name))
    for group in ("model", "training"):
        before, after = (asdict(getattr(config, group)) for config in full)
        shrunk_before, shrunk_after = (asdict(getattr(config, group)) for config in (base, row))
        for key in before:
            if key not in ("save_every", "valid_every", "keep_last"):
                assert (before[key] == after[key]) == (shrunk_before[key] == shrunk_after[key]), key
    widths = [(config.model.key_size / config.model.d_model, config.model.d_ff / config.model.d_model) for config in
              (full[1], row)]  # fmt: skip
    assert widths[0] == widths[1]
    assert row.training.steps / base.training.steps == full[1].training.steps / full[0].training.steps
    assert row.name == f"table3-{scale}/{name}"


def test_user_overrides_win_over_the_scale() -> None:
    assert settings("a1", 1, ["table3.scale=small", "training.batch_tokens=700"]).training.batch_tokens == 700
    assert settings("a1", 1, ["training.steps=7"]).name == "table3/a1"


def test_another_budget_keeps_the_proportions_of_steps_and_has_its_own_folder() -> None:
    base, big = (settings(name, 1, ["table3.scale=multi30k", "table3.base_steps=100"]) for name in ("base", "big"))
    assert (base.training.steps, big.training.steps) == (100, 300)
    assert base.name == "table3-multi30k-100/base"
    with pytest.raises(ConfigError, match=r"table3\.base_steps needs a smaller table3\.scale"):
        compose(["table3.base_steps=100"])


def test_each_seed_has_a_run_of_its_own() -> None:
    first, second = (settings("c1", seed, ["table3.scale=small"]) for seed in (1, 2))
    assert (first.seed, first.name) == (1, "table3-small/c1")
    assert (second.seed, second.name) == (2, "table3-small/c1-seed2")


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


def save(config: Config, step: int) -> None:
    """Save a checkpoint, and the settings of the run."""
    (config.run_folder / "config.yaml").write_text(to_yaml(config))
    Checkpoints(config.run_folder).save(
        step, weights={"w": torch.ones(2)}, trainer={}, tokenizer_files={"tokenizer.model": b"pieces"},
        config_text=to_yaml(config), valid={},
    )  # fmt: skip


def test_a_row_that_ended_at_the_limit_of_its_time_is_done_until_the_limit_changes(tmp_path: Path) -> None:
    config = finished_row(tmp_path)
    limited, longer = (
        replace(config, training=TrainingConfig(steps=1000, max_training_minutes=each)) for each in (90, 91)
    )
    save(limited, 10)
    assert [is_done(each) for each in (limited, longer)] == [True, False]
    assert not is_done(replace(config, training=TrainingConfig(steps=1000)))
    save(limited, 11)  # trained further, and not scored
    assert not is_done(limited)


def test_the_table_has_our_results_and_the_papers_in_aligned_columns(tmp_path: Path) -> None:
    result = read_result(finished_row(tmp_path), 37_000)
    assert result is not None
    lines = as_markdown({"c1": [result], "big": []}).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[2] == ["c1", "N 2", "6.50", "6.11", "22.0", "23.1", "23.7", "33.7", "36", "1.500", "-"]
    assert cells[3][2:] == ["-", "4.33", "-", "-", "26.4", "-", "213", "-", "84"]
    assert len({len(line) for line in lines}) == 1


def test_the_table_has_means_and_standard_deviations_of_seeds() -> None:
    runs = [RunResult(perplexity, 20.0, 21.0, 2_000_000, 0.5) for perplexity in (5.0, 6.0, 7.0)]
    cells = [cell.strip() for cell in as_markdown({"base": runs}).splitlines()[2].split("|")[1:-1]]
    assert cells[2:] == ["6.00 ± 1.00", "4.92", "20.0 ± 0.0", "21.0 ± 0.0", "25.8", "2.000", "65", "0.500", "12"]


def test_rank_correlation_equals_pearsons_of_mean_ranks() -> None:
    assert spearman([1, 5, 9, 100], [2, 3, 4, 5]) == pytest.approx(1)
    assert spearman([1, 5, 9, 100], [5, 4, 3, 2]) == pytest.approx(-1)
    assert spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) == pytest.approx(1 - 6 * 4 / (5 * 24))  # without ties
    with_ties = spearman([1, 2, 2, 3], [10, 20, 30, 40])
    assert with_ties == pytest.approx(np.corrcoef([1, 2.5, 2.5, 4], [1, 2, 3, 4])[0, 1])


def test_spread_is_pooled_over_rows_with_several_seeds() -> None:
    assert pooled_spread([[1.0], [7.0]]) is None
    assert pooled_spread([[1.0, 3.0], [10.0, 14.0], [5.0]]) == pytest.approx(((2 + 8) / 2) ** 0.5)


def test_effects_have_an_error_and_the_papers_beside_them() -> None:
    logs = {"base": [3.0, 3.2], "a1": [3.5], "a2": [3.0, 3.1], "c1": [], "e": [3.1], "big": [2.0]}
    found = effects({name: list(np.exp(values)) for name, values in logs.items()})
    assert [each.row for each in found] == ["a1", "a2", "e", "big"]
    spread = ((0.02 + 0.005) / 2) ** 0.5
    assert found[0][1:] == pytest.approx((0.4, spread * 1.5**0.5, np.log(5.29 / 4.92)))
    assert found[1][1:] == pytest.approx((-0.05, spread, np.log(5.00 / 4.92)))
    rows = [[cell.strip() for cell in row.split("|")[4:-1]] for row in effects_as_markdown(found).splitlines()[2:]]
    assert rows == [
        *(["+7.5%", "yes"], ["+1.6%", "not clear"], ["none", "-"]),
        ["-12.0%", "yes"],
    ]
    assert effects_as_markdown(found).splitlines()[2].split("|")[3].strip() == "+49.2% ± 20.4"


def test_clear_effects_of_another_sign_are_named() -> None:
    found = findings({"base": [50.0, 51.0], "a1": [40.0, 41.5], "a2": [50.2], "big": [30.0, 30.2], "c1": []})
    assert "over 4 rows: 0.20." in found[0]
    assert found[1].endswith("2 of 3 effects are larger than 2 times their standard error; of these, a1 have another "
                             "sign than in the paper.")  # fmt: skip


def test_one_seed_shows_no_spread() -> None:
    rows = {"base": [50.0], "a1": [60.0], "big": [30.0]}
    assert "table3.seeds=3" in findings(rows)[1]
    assert effects_as_markdown(effects(rows)).count("not clear") == 2
    assert effects_as_markdown(effects({"a1": [60.0]})) == ""


def test_effects_of_equal_rows_are_rarely_clear() -> None:
    random, clear = np.random.default_rng(1), 0
    for _ in range(200):
        clear += sum(
            each.is_clear for each in effects({row: list(np.exp(random.normal(3, 0.05, 3))) for row in TABLE_3})
        )
    assert 0.02 < clear / (200 * 19) < 0.08
