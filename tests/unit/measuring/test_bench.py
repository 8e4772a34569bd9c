"""The trainers that tuning times."""

import pytest
import torch

from nmt.config.keys import with_values
from nmt.config.schema import Config, DataConfig, ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.synthetic import synthetic_pairs
from nmt.measuring import search
from nmt.measuring.bench import BATCHES, TrainingBench, TrainingContender
from nmt.measuring.search import Search, Settings

WORDS = 120
CONFIG = Config(
    model=ModelConfig(layers=1, d_model=16, d_ff=32, heads=2, dropout=0.3),
    training=TrainingConfig(batch_tokens=2000),
    data=DataConfig(max_pieces=40),
    runtime=RuntimeConfig(device="cpu", precision="fp32"),
)


def bench(config: Config = CONFIG) -> TrainingBench:
    return TrainingBench(config, synthetic_pairs(WORDS, WORDS, pairs=600, max_length=40), (WORDS, WORDS))


@pytest.mark.slow
def test_all_contenders_have_the_same_check_and_train_on_the_same_batches() -> None:
    """Dropout is 0.3, and its masks depend on how the batch is divided; the check leaves dropout out."""
    made = bench()
    contenders = [made.open({"runtime.parallel": parallel, "runtime.threads": 2}) for parallel in (1, 2)]
    for number in range(BATCHES + 1):
        assert contenders[0].tokens(number) == contenders[1].tokens(number) <= 2 * 2000
    checks = [contender.check for contender in contenders]
    assert checks[0].loss == pytest.approx(checks[1].loss, rel=1e-6)
    assert checks[0].gradient_norm == pytest.approx(checks[1].gradient_norm, rel=1e-5)
    assert checks[0].precision == "fp32"


def test_contender_trains_with_its_own_threads() -> None:
    made = bench()
    one, two = made.open({"runtime.threads": 1}), made.open({"runtime.threads": 2})
    for contender, threads in ((one, 1), (two, 2), (one, 1)):
        assert contender.step(0) > 0
        assert torch.get_num_threads() == threads


def test_contender_takes_its_share_of_a_batch_for_several_devices() -> None:
    text = synthetic_pairs(WORDS, WORDS, pairs=600, max_length=40)
    whole, share = (TrainingBench(CONFIG, text, (WORDS, WORDS), devices).open({}) for devices in (1, 4))
    counts = [sum(len(each.labels) for each in contender._batches[0].micro_batches) for contender in (whole, share)]
    assert counts[1] < counts[0] / 3


def test_batches_shrink_until_a_step_is_short_enough() -> None:
    made = bench(with_values(CONFIG, {"training.batch_tokens": 8000}))
    made.fit_batch(seconds_per_step=1e-6, limit=60)
    assert 1024 <= made.batch_tokens < 2048
    made = bench(with_values(CONFIG, {"training.batch_tokens": 2000}))
    made.fit_batch(seconds_per_step=1000, limit=60)
    assert made.batch_tokens == 2000


def test_batches_are_small_if_the_default_settings_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    made = bench(with_values(CONFIG, {"training.batch_tokens": 64_000}))

    def fail(settings: Settings) -> TrainingContender:
        raise MemoryError

    monkeypatch.setattr(made, "open", fail)
    made.fit_batch(seconds_per_step=1000, limit=60)
    assert made.batch_tokens == 1024


@pytest.mark.slow
def test_real_search_chooses_among_real_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_ROUNDS", 3)
    monkeypatch.setattr(search, "HOPELESS", 1000)  # on a busy machine, two threads can take many times as long as one
    outcome = Search(bench(with_values(CONFIG, {"runtime.threads": 2})), seconds_per_choice=60).run(
        ["runtime.parallel"]
    )
    assert [row.setting for row in outcome.table] == ["default", "runtime.parallel"]
    assert all(row.tokens_per_second and not row.note for row in outcome.table)
    row = outcome.table[1]
    assert outcome.settings == ({row.setting: row.candidate} if (row.ratio or 0) >= search.MIN_GAIN else {})
