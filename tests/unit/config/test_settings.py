"""Settings from conf/ and the command line: what the shipped files say, and one line for each mistake."""

import dataclasses
from functools import cache
from itertools import zip_longest

import pytest
import yaml

from nmt.config import saved
from nmt.config.compose import compose, conf_folder, options
from nmt.config.keys import all_keys, group_names, value_of
from nmt.config.registry import CHOICES, load
from nmt.config.tree import Config
from nmt.errors import ConfigError

NEEDS = ("tokenizer.joint=false", "model.tie_embeddings=false", "training.valid_sentences=0")
"""Settings without which some files of tokenizers and trees do not compose."""
OF_GROUPS = [
    [(group, option) for group, option in zip(group_names()[1:], row, strict=True) if option]
    for row in zip_longest(*(options(group) for group in group_names()[1:]))
]
"""All files but the experiments, at most one per group in each row, because composing takes a tenth of a second."""
CHOSEN = {
    group: option
    for entry in yaml.safe_load((conf_folder() / "nmt.yaml").read_text(encoding="utf-8"))["defaults"]
    if isinstance(entry, dict)
    for group, option in entry.items()
}
"""The files that the root of the settings chooses, by group."""


@cache
def composed(experiment: str) -> Config:
    return compose([f"experiment={experiment}"])


def flat(config: Config) -> dict[str, object]:
    return saved.flatten(dataclasses.asdict(config))


def changes(config: Config) -> dict[str, object]:
    return {key: new for key, (_, new) in saved.differences(flat(Config()), flat(config)).items()}


def test_there_are_at_most_150_settings() -> None:
    assert len(all_keys()) <= 150
    assert all(key.meaning for key in all_keys().values())


def test_every_choice_has_code_and_is_in_the_help() -> None:
    for setting, choices in CHOICES.items():
        for name, (_, meaning) in choices.items():
            assert load(setting, name) is not None
            assert f"{name} ({meaning})" in all_keys()[setting].meaning


def test_without_overrides_settings_have_the_defaults_of_the_schema() -> None:
    assert compose([]) == composed(CHOSEN["experiment"]) == Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().training.steps = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["model=big"], "model.dropout", 0.3),
        (["model=big", "experiment=wmt14_en_fr_big"], "model.dropout", 0.1),
        (["model.dropout=0.2", "experiment=wmt14_en_fr_big"], "model.dropout", 0.2),
        (["experiment=multi30k", "data=demo"], "data.corpus", "demo"),
        (["experiment=demo", "experiment=multi30k"], "name", "multi30k"),
        (["training.steps=3", "training.steps=4"], "training.steps", 4),
        (["name=2026"], "name", "2026"),
        (["training.weight_decay=1"], "training.weight_decay", 1.0),
        (["data.train=[a,1]"], "data.train", ["a", "1"]),
        (["data.mixture.more.train=[a,b]"], "data.mixture", {"more": {"train": ["a", "b"]}}),
    ],
)
def test_later_and_more_special_words_win(words: list[str], key: str, value: object) -> None:
    assert value_of(compose(words), key) == value


@pytest.mark.parametrize("experiment", options("experiment"))
def test_every_shipped_experiment_composes(experiment: str) -> None:
    assert composed(experiment).name == experiment


@pytest.mark.parametrize("row", OF_GROUPS, ids=str)
def test_shipped_files_change_what_they_state_and_chosen_ones_show_defaults(row: list[tuple[str, str]]) -> None:
    needs = NEEDS if {"demo_trees", "wsj", "trees"} & {option for _, option in row} else ()
    found, expected = changes(compose([*(f"{group}={option}" for group, option in row), *needs])), set[str]()
    for group, option in row:
        stated = yaml.safe_load((conf_folder() / group / f"{option}.yaml").read_text(encoding="utf-8"))
        named = {f"{group}.{key}": value for key, value in stated.items()}
        usual = {key for key, value in named.items() if value == flat(Config())[key]}
        assert usual == ({*named} if option == CHOSEN[group] else set())
        expected |= named.keys() - usual
    assert found.keys() ^ expected <= {need.partition("=")[0] for need in needs}


BIG: dict[str, object] = {
    "model.d_model": 1024,
    "model.d_ff": 4096,
    "model.heads": 16,
    "model.dropout": 0.3,
    "training.steps": 300_000,
    "training.save_every": 600,
    "training.valid_every": 3000,
    "training.keep_last": 20,
}
TABLE3: dict[str, dict[str, object]] = {
    "base": {},
    "a1": {"model.heads": 1},
    "a2": {"model.heads": 4},
    "a3": {"model.heads": 16},
    "a4": {"model.heads": 32},
    "b1": {"model.d_k": 16},
    "b2": {"model.d_k": 32},
    "c1": {"model.layers": 2},
    "c2": {"model.layers": 4},
    "c3": {"model.layers": 8},
    "c4": {"model.d_model": 256},
    "c5": {"model.d_model": 1024},
    "c6": {"model.d_ff": 1024},
    "c7": {"model.d_ff": 4096},
    "d1": {"model.dropout": 0.0},
    "d2": {"model.dropout": 0.2},
    "d3": {"training.label_smoothing": 0.0},
    "d4": {"training.label_smoothing": 0.2},
    "e": {"model.positions": "learned"},
    "big": BIG,
}
WIDTHS = {"a1": (512, 512), "a2": (128, 128), "a3": (32, 32), "a4": (16, 16), "b1": (16, 64), "b2": (32, 64),
          "c4": (32, 32), "c5": (128, 128)}  # fmt: skip


@pytest.mark.parametrize("row", TABLE3)
def test_a_row_of_table_3_changes_exactly_what_the_paper_changes(row: str) -> None:
    scoring: dict[str, object] = {"name": f"table3/{row}", "checkpoint": "last", "evaluation.splits": ["valid"]}
    config = composed(f"table3/{row}")
    assert changes(config) == scoring | TABLE3[row]
    assert (config.model.key_size, config.model.value_size) == WIDTHS.get(row, (64, 64))


def test_multi30k_is_text_of_ones_own_with_a_vocabulary_that_does_not_wait_for_its_files() -> None:
    found = saved.differences(flat(composed("own")), flat(composed("multi30k")))
    others = {key: new for key, (_, new) in found.items() if not key.startswith("data.")}
    assert others == {"name": "multi30k", "own.keep": ["tokenizer.vocab_size"], "tokenizer.vocab_size": 11_900}


def test_the_other_runs_of_the_paper_change_exactly_these_settings() -> None:
    assert {f"table3/{row}" for row in TABLE3} == {name for name in options("experiment") if name.startswith("table3/")}
    french: dict[str, object] = {"data.corpus": "wmt14_en_fr", "data.target_lang": "fr", "data.hub_config": "fr-en"} | {
        "data.drop_copies": True,
        "data.max_ratio": 1.5,
        "data.deduplicate": True,
        "tokenizer.vocab_size": 32_000,
    }
    big = BIG | {"averaging.last": 20}
    expected: dict[str, dict[str, object]] = {
        "en_de_base": {},
        "en_de_big": big,
        "en_fr_base": french,
        "en_fr_big": big | french,
    }
    del expected["en_fr_big"]["model.dropout"]
    for name, settings in expected.items():
        named = {} if name == "en_de_base" else {"name": f"wmt14_{name}"}
        assert changes(composed(f"wmt14_{name}")) == settings | named


TREES = ["data.target_lang=trees", "tokenizer.joint=false", "training.valid_sentences=0", "model.tie_embeddings=false"]
MORE = "data.mixture.more.train=[a.en,a.de]"
GUIDED = ["experiment=demo", "data.train_alignments=demo", "training.guided_weight=0.05"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["training.stepz=3"], "there is no setting training.stepz; did you mean training.steps?"),
        (["+trainig.steps=3"], "there is no setting trainig; did you mean training?"),
        (["steps=3"], "did you mean training.steps?"),
        (["modle=big"], "there is no setting modle; did you mean model?"),
        (["training.lr=3"], "there is no setting training.lr; it is training.learning_rate here"),
        (["num_heads=3"], "did you mean model.heads?"),
        (["decoding.temprature=3"], "did you mean decoding.temperature?"),
        (["xyzzy=3"], "`nmt COMMAND --help=all` lists the settings"),
        (["training=small,base"], "add --multirun"),
        (["averaging=5"], "averaging is a group of settings, and cannot be 5"),
        (["runtime=cpu"], "runtime is a group of settings, and cannot be 'cpu': set runtime.KEY=VALUE"),
        (["+training.steps=3"], "remove + prefix"),
        (["experiment=tabel3/a1"], "there is no experiment=tabel3/a1; did you mean table3/a1?"),
        (["model=enormous"], "choose from base, big, modern, small, tiny"),
        (["training.steps=abc"], "training.steps must be a whole number, not 'abc'"),
        (["model.dropout=high"], "model.dropout must be a number, not 'high'"),
        (["runtime.cuda_graphs=perhaps"], "runtime.cuda_graphs must be true, false or null, not 'perhaps'"),
        (["training.steps=true"], "training.steps must be a whole number, not True"),
        (["data.train=a"], "data.train must be a list, such as [a,b], not 'a'"),
        (["data.train=[[a]]"], "data.train must be a list"),
        (["name=null"], "name must be text, not None"),
        (["name=${nowhere}"], "name cannot be resolved: Interpolation key 'nowhere' not found"),
        (["input=a b(c"], "quote special characters twice, because the shell removes the outer quotes: \"key='a b"),
        (["news.en"], "cannot read 'news.en': settings are written key=value"),
        ([""], "cannot read ''"),
        (["model.heads=7"], "model.heads=7 does not divide model.d_model=512"),
        (["training.batch_tokens=-1"], "training.batch_tokens=-1 must be at least 1"),
        (["training.learning_rate=nan"], "training.learning_rate=nan must be at least 0"),
        (["model.d_model=9223372036854775808"], "must be between -2^63 and 2^63"),
        ([f"training.learning_rate={10**400}"], "must be between -2^63 and 2^63"),
        (["training.optimizer=adm"], "training.optimizer=adm is not one of adam, muon; did you mean adam?"),
        (["runtime.device=gpu"], "runtime.device=gpu is not one of auto, cpu, cuda, mps"),
        (["name=../elsewhere"], "must be the plain name of a folder"),
        (["averaging.last=9"], "averaging.last=9 is more than the training.keep_last=5"),
        (["tokenizer.joint=false"], "model.tie_embeddings=true cannot be used with tokenizer.joint=false"),
        (["decoding.temperature=0.5"], "decoding.temperature, top_k and top_p are for samples"),
        (["training.guided_weight=0.1"], "needs word alignments: name their file in data.train_alignments"),
        ([*GUIDED, "noise.bpe_dropout=0.1"], "cannot be used with noise"),
        ([*GUIDED, "model.architecture=decoder_only"], "cannot be used with model.architecture=decoder_only"),
        ([*GUIDED, "runtime.compile=true"], "cannot be used with runtime.compile=true"),
        ([*GUIDED, "data.train_alignments=links.txt"], "data.source=demo has its own alignments"),
        ([*GUIDED, "data.max_pieces=70000"], "needs data.max_pieces of at most 65,535"),
        ([MORE, "data.mixture.more.weight=0"], "data.mixture.more.weight=0.0 must be above 0"),
        ([MORE, "data.mixture.more.weight=heavy"], "data.mixture.more.weight must be a number"),
        ([MORE, "data.temperature=0.001"], "data.temperature=0.001 must be a number from 1 on"),
        ([MORE, "data.mixture.more.wait=2"], "no setting data.mixture.more.wait; did you mean "),
        ([MORE, "data.mixture.more.engine=processes"], "there is no setting data.mixture.more.engine"),
        ([MORE, "data.mixture.more.train=[]"], "data.mixture.more.train is empty"),
        ([MORE, "data.mixture.more.target_lang=trees"], "all corpora or none must have target_lang=trees"),
        ([MORE, "data.mixture.more.tag='a b'"], "must be one word, such as @bt@"),
        (["data.mixture.more=3"], "data.mixture.more must be settings"),
        (["data.mixture.main.train=[a,b]"], "'main' must be a name of letters, digits, _ and -, and not main"),
        (["data.mixture={../x: {train: [a,b]}}"], "'../x' must be a name of letters"),
        (["data.min_language_probability=1.0"], "must be at least 0 and below 1"),
        (["data.drop_overlap=sides"], "data.drop_overlap=sides is not one of pair, side; "),
        (["noise.bpe_dropout=0.1", "tokenizer.model_type=unigram"], "bpe_dropout=0.1 cannot be used with tokenizer"),
        ([*TREES, "noise.bpe_dropout=0.1"], "noise.bpe_dropout=0.1 cannot be used with data.target_lang=trees"),
        (["evaluation.bleu_tokenizer=14a"], "evaluation.bleu_tokenizer=14a is not one of auto, 13a, zh"),
        (["data=files", "data.test=[]", "data.test_alignments=gold"], "needs a test set of your own"),
        ([*TREES, "data.source=demo", "data.train_alignments=demo"], "data.train_alignments needs text on both sides"),
        (
            ["runtime.shard=weights", "training.optimizer=mine:lion"],
            "cannot be used with training.optimizer=mine:lion: change one of the two",
        ),
        (["data.max_pieces=30000"], "training.batch_tokens=25000 is too small for one sentence"),
    ],
)
def test_a_mistake_is_reported_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose(words)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "override",
    [
        *(
            "name=../../x",
            "name=/x",
            "name='a\nb'",
            "name='\x1b[2J'",
            f"name={'x' * 300}",
            "data.corpus=..",
            "name=x\0y",
        ),
        *("data.source_lang=../../x", "data.target_lang=''", "data.target_lang=a/b", "evaluation.splits=[../../x]"),
        *("name=\udcff", "input=\udcff", "seed=-1", "seed=99999999999999999999", "data.max_ratio=nan"),
        *("evaluation.splits=[[]]", "data.train=[{a: 1}]", "own.keep=[[a]]"),
    ],
)
def test_unsafe_or_impossible_settings_are_refused(override: str) -> None:
    with pytest.raises(ConfigError):
        compose([override])
