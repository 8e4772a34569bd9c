"""What the user gives wins, a run that has begun keeps its values, and the rest follows from the text."""

from pathlib import Path

import pytest

from nmt.config.commands import DERIVED, SHAPE
from nmt.config.compose import compose, given_settings
from nmt.config.data import TokenizerConfig
from nmt.config.keys import value_of, with_values
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.data.prepare import prepare
from nmt.own_text.complete import measure_text, share_to_hold_out, vocabulary_for, with_values_for_text
from nmt.own_text.prepare import plan_training
from nmt.runs.layout import RunLayout, step_folder_name
from nmt.text.train_tokenizer import train
from tests.integration.toy import pairs, refuse, succeed, write_pairs

NAMES = [*DERIVED, "own.minutes"]


def words_for(folder: Path, lines: list[tuple[str, str]], endings: tuple[str, str] = ("en", "de")) -> list[str]:
    """Write two files, and return the settings of a run on them that gives nothing else."""
    paths = [f"paths.data={folder}/data", f"paths.outputs={folder}/outputs"]
    return ["experiment=own", f"data.train={write_pairs(folder / 'train', lines, endings)}", *paths]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    return words_for(tmp_path, pairs(100, 1))


def completed(words: list[str]) -> Config:
    return with_values_for_text(compose(words), given_settings(words))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], set[str]()),
        (["training.steps=77"], {"training.steps"}),
        (["model.d_model=64"], {*SHAPE}),
        (["model.encoder_layers=6"], {*SHAPE}),
        (["training=base"], {name for name in DERIVED if name.startswith("training.")}),
        (["own.keep=[model.dropout]"], {"model.dropout"}),
    ],
)
def test_settings_that_are_given_are_kept(words: list[str], given: list[str], expected: set[str]) -> None:
    config, asked = completed([*words, *given]), compose([*words, *given])
    assert {*config.own.keep} == expected
    assert [value_of(config, name) for name in expected] == [value_of(asked, name) for name in expected]


def test_settings_of_the_users_own_file_are_kept_and_other_experiments_change_nothing(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    mine = "# @package _global_\n# Mine.\ndefaults:\n  - own\nname: mine\ntraining:\n  warmup_steps: 123\n"
    (tmp_path / "conf" / "experiment" / "mine.yaml").write_text(mine, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    config = completed(["experiment=mine", *words[1:]])
    assert ({*config.own.keep}, config.training.warmup_steps) == ({"training.warmup_steps"}, 123)
    for others in (["experiment=iwslt14", *words[1:]], [*words, "own.derive=false"]):
        assert completed(others) == compose(others)


def test_a_run_that_has_begun_keeps_its_values_unless_others_or_another_text_are_given(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = completed(words)
    values = {"model.dropout": 0.27, "training.steps": 321, "tokenizer.vocab_size": 111, "own.minutes": 7.5}
    begun = with_values(config, values)
    for step, settings in ((5, config), (10, begun)):
        folder = RunLayout(config.run_folder).checkpoints / step_folder_name(step)
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(to_yaml(settings), encoding="utf-8")
    monkeypatch.setattr("nmt.own_text.prepare.plan", None)  # nothing is planned again
    for config in (completed(words), plan_training(completed(words)), plan_training(compose(words))):
        assert [value_of(config, name) for name in NAMES] == [value_of(begun, name) for name in NAMES]
    config = completed([*words, "training.steps=400", "own.minutes=9"])
    assert (config.training.steps, config.own.minutes, config.model.dropout) == (400, 9, 0.27)
    other = write_pairs(tmp_path / "other", pairs(60, 2), ("fr", "es"))
    config = completed(["experiment=own", f"data.train={other}", *words[2:], "data.corpus=other"])
    assert (config.data.source_lang, config.data.target_lang, config.model.dropout) == ("fr", "es", 0.27)
    assert config.tokenizer.vocab_size != 111


@pytest.mark.parametrize(
    ("given", "saved", "corpus"),
    [([], {}, "mine"), (["data.corpus=own"], {}, "own"), ([], {"data.source": "demo"}, "own")],
)
def test_later_commands_read_the_corpus_that_a_run_began_with(
    words: list[str], given: list[str], saved: dict[str, object], corpus: str
) -> None:
    later = ["name=mine", *(word for word in words if not word.startswith("data.train"))]
    config = with_values(completed([*words, "name=mine"]), {"data.corpus": "mine", **saved})
    folder = RunLayout(config.run_folder).checkpoints / step_folder_name(1)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    assert completed([*later, *given]).data.corpus == corpus


@pytest.mark.parametrize(("vocabulary", "is_derived"), [("new", True), ("old", False), ("extend", False)])
def test_a_new_vocabulary_suits_the_text(words: list[str], vocabulary: str, is_derived: bool) -> None:
    tuning = [*words, "training.init_from=other", f"training.init_vocabulary={vocabulary}"]
    size = completed(words if is_derived else ["experiment=own"]).tokenizer.vocab_size
    assert completed(tuning).tokenizer.vocab_size == size


def test_bad_values_and_text_are_refused_in_one_line(words: list[str], tmp_path: Path) -> None:
    trees = ["data.target_lang=trees", "tokenizer.joint=false", "model.tie_embeddings=false"]
    assert "own.derive=true cannot be used with" in refuse(["data", *words, *trees, "training.valid_sentences=0"])
    for given, said in {
        "own.minutes=-1": "own.minutes=-1.0 must be at least 0",
        "own.keep=[training.step]": "did you mean training.steps?",
    }.items():
        assert said in refuse(["data", *words, given])
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text("")
    assert "is empty: check data.train" in refuse(["data", *words])
    (tmp_path / "train.de").unlink()
    assert completed(words).tokenizer.vocab_size == compose(words).tokenizer.vocab_size


def test_the_vocabulary_grows_with_the_text_within_limits_and_has_a_piece_for_each_character() -> None:
    found = [vocabulary_for(10**power, 10**power, 100) for power in range(4, 11)]
    assert found == sorted(found)
    assert found[-1] == 32_000
    assert vocabulary_for(4_000_000, 40_000, 100) == 12_000  # about Multi30k
    assert vocabulary_for(400_000, 40_000, 100) == pytest.approx(12_000 / 10**0.2, abs=50)
    assert vocabulary_for(10_000, 40_000, 5000) == 10_000


def test_a_tokenizer_can_be_trained_with_the_vocabulary_of_a_short_text() -> None:
    lines = [f"{source} {target}" for source, target in pairs(60, 1)]
    text = " ".join(lines)
    size = vocabulary_for(len(text), len(set(text.split())), len(set(text)))
    assert train(lines, len(lines), TokenizerConfig(vocab_size=size))


def test_the_size_is_that_of_the_pairs_that_are_kept_for_training(tmp_path: Path) -> None:
    config = compose([*words_for(tmp_path, [("a bc d", "x"), ("a a", "yz y"), ("e", "")]), "data.hold_out=0"])
    assert measure_text(config) == (len("a bc d x") + len("a a yz y"), len({"a", "bc", "d", "x", "yz", "y"}), 8)
    assert measure_text(with_values(config, {"data.max_words": 2})) == (len("a a yz y"), 3, 4)
    apart = with_values(config, {"tokenizer.joint": False, "model.tie_embeddings": False})
    assert measure_text(apart) == (len("xyz y"), 3, len("abcd "))
    config = compose([*words_for(tmp_path, pairs(400, 1)), "data.hold_out=0.2"])
    everything = sum(len(" ".join(pair)) for pair in pairs(400, 1))
    assert 0.5 * everything < measure_text(config)[0] < 0.7 * everything


def test_a_prepared_corpus_keeps_its_values_until_its_text_changes(tmp_path: Path) -> None:
    words = words_for(tmp_path, pairs(200, 1))
    suitable = completed(words).tokenizer.vocab_size
    assert "vocab_size=9000 is more than the text allows" in refuse(["data", *words, "tokenizer.vocab_size=9000"])
    assert completed(words).tokenizer.vocab_size == suitable
    given = ["data.hold_out=0.1", "tokenizer.vocab_size=150", "data.target_lang=fr"]
    prepare(completed([*words, *given]), say=lambda _: None)
    kept = completed(words)
    assert (kept.tokenizer.vocab_size, kept.data.hold_out, kept.data.target_lang) == (150, 0.1, "fr")
    (tmp_path / "train.de").rename(tmp_path / "moved")
    assert completed(words).tokenizer.vocab_size == 150
    grown = completed(words_for(tmp_path, pairs(6000, 2)))
    assert grown.tokenizer.vocab_size not in (150, compose(words).tokenizer.vocab_size)
    assert (grown.data.hold_out, grown.data.target_lang) == (0.05, "de")


def test_text_at_an_address_is_measured_by_the_command_that_prepares_it(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    here, there = completed(words), [word.replace(f"{tmp_path}/train", f"file://{tmp_path}/train") for word in words]
    assert completed(there).tokenizer.vocab_size == compose(there).tokenizer.vocab_size
    assert not (tmp_path / "cache").exists()
    succeed(["data", *there])
    prepared = completed(there)
    assert prepared.tokenizer == here.tokenizer
    assert prepared.data.hold_out == here.data.hold_out != compose(there).data.hold_out


def test_the_share_to_hold_out_falls_with_the_text(words: list[str]) -> None:
    shares = {0: 0.05, 2000: 0.05, 10_000: 0.03, 29_000: 0.01, 1_000_000: 0.01}
    assert {size: share_to_hold_out(size) for size in shares} == shares
    assert completed(words).data.hold_out == 0.05
    assert completed([*words, "data.valid=[a,b]", "data.test=[c,d]"]).data.hold_out == 0.01  # nothing is held out


@pytest.mark.parametrize(
    ("endings", "given", "expected"),
    [
        (("fr", "pt-BR"), [], ("fr", "pt-BR")),
        (("source", "target"), [], ("en", "de")),
        (("fr", "es"), ["data.target_lang=it"], ("fr", "it")),
        (("fr", "es"), ["own.derive=false"], ("en", "de")),
    ],
)
def test_languages_are_those_of_the_file_names_unless_given(
    tmp_path: Path, endings: tuple[str, str], given: list[str], expected: tuple[str, str]
) -> None:
    data = completed([*words_for(tmp_path, pairs(20, 1), endings), *given]).data
    assert (data.source_lang, data.target_lang) == expected
