"""A mixture is prepared corpus by corpus, with one tokenizer whose tags are words that occur nowhere else."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.commands import data as command
from nmt.config.data import corpora_of
from nmt.config.tree import Config
from nmt.data import prepare
from nmt.data.corpora import split_settings
from nmt.data.manifest import read_manifest
from nmt.data.mixture import open_training_text
from nmt.data.prepared import require_prepared
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer
from tests.integration.toy import write_sides
from tests.unit.data.corpus import config_in, run, text_pairs, with_data


@pytest.fixture
def mixed(tmp_path: Path) -> Config:
    """Give a corpus with development and test text, one with a filter, and one into another language."""
    sizes = {"train": 200, "valid": 9, "test": 9, "more": 100, "french": 80}
    files = {
        name: write_sides(tmp_path / name, text_pairs(count, number), ("source", "target"))
        for number, (name, count) in enumerate(sizes.items())
    }
    more = Path(files["more"][1])
    more.write_text("\n".join(["x " * 30, *more.read_text().splitlines()[1:]]) + "\n")
    return config_in(
        tmp_path, 100, train=files["train"], valid=files["valid"], test=files["test"], tag="<de>",
        mixture={
            "more": {"train": files["more"], "max_words": 25, "hold_out": 0.1, "tag": "<bt>", "weight": 2},
            "french": {"train": files["french"], "target_lang": "fr", "tag": "<fr>"},
        },
    )  # fmt: skip


def mixture_of(config: Config) -> dict[str, Any]:
    return config.data.mixture


def with_corpus(config: Config, name: str, **settings: Any) -> Config:
    mixture = {**mixture_of(config), name: {**mixture_of(config).get(name, {}), **settings}}
    return with_data(config, mixture=mixture)


def test_each_corpus_has_its_own_tasks_filters_and_splits(mixed: Config) -> None:
    ran = run(mixed)
    assert {"encode train", "encode more.train", "encode more.valid", "encode french.train"} < {*ran}
    assert "collect french.valid" not in ran
    manifest = read_manifest(mixed.data_folder)
    assert manifest.collected("more.train").dropped["words"] == 1
    assert manifest.collected("train").dropped["words"] == 0
    counts = [manifest.collected(f"more.{split}").kept for split in ("train", "valid", "test")]
    assert sum(counts) == 99
    assert min(counts) > 0
    assert (mixed.data_folder / "french.train.fr").is_file()
    assert split_settings(mixed.data, "french.train").languages == ("en", "fr")
    assert any("pairs of more.train: " in line for line in command.summary(manifest, mixed))
    require_prepared(mixed)
    assert run(mixed) == []


def test_a_tag_is_one_id_at_the_beginning_of_each_source_sentence(mixed: Config) -> None:
    run(mixed)
    tokenizer, store = Tokenizer.load(mixed.data_folder), open_training_text(mixed.data_folder, mixed.data)
    tags = {name: corpus.settings.tag for name, corpus in corpora_of(mixed.data).items()}
    ids = {name: tokenizer.encode_source([tag])[0] for name, tag in tags.items()}
    assert [len(each) for each in ids.values()] == [1, 1, 1]
    for pair in range(len(store)):
        first, *rest = store.source(pair).tolist()
        assert [first] == ids[store.corpora[store.corpora_of(np.array([pair]))[0]]]
        assert not {*rest, *store.target(pair).tolist()} & {each for found in ids.values() for each in found}
    line = (mixed.data_folder / "french.train.en").read_text().splitlines()[3]
    assert line.startswith("<fr> ")
    assert tokenizer.decode(tokenizer.encode_source([line])[0]) == line
    assert tokenizer.encode_source([line.removeprefix("<fr> ")])[0] == tokenizer.encode_source([line])[0][1:]


def test_another_corpus_prepares_the_others_again_only_for_another_tokenizer(mixed: Config, tmp_path: Path) -> None:
    mixture = {"more": mixture_of(mixed)["more"]}
    run(with_data(mixed, mixture=mixture))
    french = mixture | {"french": {**mixture_of(mixed)["french"], "tag": "<de>"}}
    both = with_data(mixed, mixture=french)
    kept = replace(both, tokenizer=replace(both.tokenizer, folder=str(mixed.data_folder)))
    before = Tokenizer.load(mixed.data_folder)
    assert run(kept) == ["collect french.train", "overlap", "encode french.train"]
    assert Tokenizer.load(mixed.data_folder).checksum == before.checksum
    require_prepared(kept)
    again: list[str] = []
    prepare.prepare(both, again.append)
    assert any(line.startswith("tokenizer: running again") and "text" in line for line in again)
    assert {"encode train: running again: its tokenizer changed"} < {*again}
    assert not any(line.startswith("collect") and "running" in line for line in again)


def test_data_of_other_settings_of_a_corpus_is_refused(mixed: Config) -> None:
    tokenizer = prepare.prepare(mixed, lambda _: None).tokenizer()
    for changes, message in (
        ({"name": "more", "max_words": 24}, r"prepared with data\.mixture\.more\.max_words=25, not 24: "),
        ({"name": "third", "train": ["a", "b"]}, r"is not prepared, or .* \(collect third.train\)"),
    ):
        with pytest.raises(UserError, match=message):
            require_prepared(with_corpus(mixed, **changes))
    for weighted in (with_corpus(mixed, "more", weight=7), with_data(mixed, temperature=5.0)):
        require_prepared(weighted)
        assert prepare.prepare(weighted, lambda _: None).tokenizer() == tokenizer, "earlier runs were trained with it"
    (mixed.data_folder / "more.train.store.json").write_text(json.dumps({"pairs": 1, "files": {}}))
    with pytest.raises(UserError, match="damaged"):
        open_training_text(mixed.data_folder, mixed.data)


def test_errors_name_the_corpus(mixed: Config) -> None:
    for changes, message in (
        ({"train": ["nowhere.en", "b"]}, r"data\.mixture\.more: nowhere\.en does not exist .* data\.train\.$"),
        ({"max_words": 1}, r"data\.mixture\.more: more\.train has no pairs"),
        ({"train": [], "source": "demo"}, r"^data\.mixture\.more\.hold_out=0\.1 has no effect"),
    ):
        with pytest.raises(UserError, match=message):
            run(with_corpus(mixed, "more", **changes))
