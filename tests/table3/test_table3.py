"""Table 3 of the paper: its rows, the smaller scales, the table with our results, and what it shows."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from nmt.config.compose import compose, options
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config, PathsConfig
from nmt.errors import ConfigError
from nmt.evaluation.paper import TABLE_3
from nmt.table3.command import choose_rows, settings
from nmt.table3.table import RunResult, read_result, read_scores, table


def test_rows_are_experiments_and_chosen_in_the_papers_order() -> None:
    assert {f"table3/{name}" for name in TABLE_3} <= {*options("experiment")}
    assert choose_rows([]) == list(TABLE_3)
    assert choose_rows(["big", "a1"]) == ["a1", "big"]
    with pytest.raises(ConfigError, match=r"no row a9; did you mean a\d\?"):
        choose_rows(["a9"])


@pytest.mark.parametrize(("name", "scale"), [*((name, "small") for name in ("b1", "c4")), ("big", "multi30k")])
def test_a_shrunk_row_differs_from_base_in_the_same_settings_as_the_papers_row(name: str, scale: str) -> None:
    full = [compose([f"experiment=table3/{each}"]) for each in ("base", name)]
    base, row = (settings(each, 1, [f"table3.scale={scale}"]) for each in ("base", name))
    for group in ("model", "training"):
        before, after = (asdict(getattr(config, group)) for config in full)
        shrunk_before, shrunk_after = (asdict(getattr(config, group)) for config in (base, row))
        for key in before.keys() - {"save_every", "valid_every", "keep_last"}:
            assert (before[key] == after[key]) == (shrunk_before[key] == shrunk_after[key]), key
    wide, narrow = full[1].model, row.model
    assert wide.key_size / wide.d_model == narrow.key_size / narrow.d_model
    assert wide.d_ff / wide.d_model == narrow.d_ff / narrow.d_model
    assert row.training.steps / base.training.steps == full[1].training.steps / full[0].training.steps
    assert row.name == f"table3-{scale}/{name}"


def test_user_overrides_win_and_each_seed_has_a_run_of_its_own() -> None:
    given = settings("c1", 2, ["table3.scale=small", "training.batch_tokens=700"])
    assert (given.training.batch_tokens, given.seed, given.name) == (700, 2, "table3-small/c1-seed2")
    assert settings("a1", 1, ["training.steps=7"]).name == "table3/a1"


def test_a_finished_row_has_our_results_and_the_papers_in_aligned_columns(tmp_path: Path) -> None:
    config = replace(Config(), name="table3/c1", paths=PathsConfig(outputs=str(tmp_path)))
    config = replace(config, training=TrainingConfig(steps=10), model=ModelConfig(layers=2))
    (config.run_folder / "eval").mkdir(parents=True)
    scores = {
        "split": "valid", "perplexity": 6.5, "checkpoint": {"name": "averaged", "step": 10},
        "bleu": {"score": 22.04, "signature": ""}, "bleu_paper": {"score": 23.06, "signature": ""},
        "decoding": asdict(config.decoding),
    }  # fmt: skip
    (config.run_folder / "eval" / "valid.json").write_text(json.dumps(scores))
    events = [{"event": event, "step": 1, "seconds": seconds} for event, seconds in (("train", 3600), ("train", 1800))]
    events.append({"event": "valid", "step": 1})
    (config.run_folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert not read_scores(replace(config, training=TrainingConfig(steps=11)))
    assert not read_scores(replace(config, decoding=DecodingConfig(beam=5)))
    result = read_result(config, 37_000)
    assert result is not None
    lines = table({"c1": [result], "big": []}).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[2] == ["c1", "N 2", "6.50", "6.11", "22.0", "23.1", "23.7", "33.7", "36", "1.500", "-"]
    assert cells[3][2:] == ["-", "4.33", "-", "-", "26.4", "-", "213", "-", "84"]
    assert len({len(line) for line in lines}) == 1


def test_the_table_has_means_of_seeds_and_the_correlation_of_ranks() -> None:
    runs = [RunResult(perplexity, 20.0, 21.0, 2_000_000, 0.5) for perplexity in (5.0, 6.0, 7.0)]
    cells = [cell.strip() for cell in table({"base": runs}).splitlines()[2].split("|")[1:-1]]
    assert cells[2:] == ["6.00 ± 1.00", "4.92", "20.0 ± 0.0", "21.0 ± 0.0", "25.8", "2.000", "65", "0.500", "12"]
    values = {"base": 2.0, "a1": 1.0, "a2": 2.0, "c1": 3.0}
    expected = np.corrcoef([2.5, 1, 2.5, 4], [1, 3, 2, 4])[0, 1]  # the paper's are 4.92, 5.29, 5.00 and 6.11
    rows = {name: [runs[0]._replace(perplexity=value)] for name, value in values.items()}
    assert table(rows).endswith(f"over 4 rows: {expected:.2f}.\n")
