"""The settings of a mixture of corpora, and mistakes in them."""

import re

import pytest

from nmt.cli import composed_settings
from nmt.config.compose import compose
from nmt.config.data import corpora_of
from nmt.config.saved import check_resumable, from_yaml, to_yaml
from nmt.errors import ConfigError, UserError
from tests.unit.config.test_compose import error_message, flat

MORE = "data.mixture.more.train=[a.en,a.de]"


def test_a_corpus_has_its_own_files_and_the_filters_of_the_main_one() -> None:
    config = compose(
        ["experiment=own", "data.max_words=99", "data.tag=x", MORE, "data.mixture.more.max_ratio=2", "data.weight=3"]
    )
    corpora = corpora_of(config.data)
    assert list(corpora) == ["main", "more"]
    more = corpora["more"].settings
    assert (more.train, more.source, more.max_words, more.max_ratio) == (["a.en", "a.de"], "files", 99, 2.0)
    assert (more.tag, more.weight, more.hold_out, more.valid) == ("", 1.0, 0.0, [])
    assert from_yaml(to_yaml(config)) == config


def test_corpora_can_be_written_as_a_dictionary() -> None:
    assert compose(["data.mixture={more: {train: [a.en,a.de]}}"]) == compose([MORE])
    written = compose(["data.mixture.more={train: [a.en,a.de], weight: 2}"])
    assert written == compose([MORE, "data.mixture.more.weight=2"])


@pytest.mark.parametrize("given", ["data.weight=5", "data.temperature=5"])
def test_settings_of_a_mixture_need_another_corpus(given: str) -> None:
    compose([MORE, given])
    with pytest.raises(ConfigError, match=f"^{re.escape(given)} has no effect without another corpus: name one"):
        composed_settings([given])


def test_another_weight_is_not_resumed() -> None:
    with pytest.raises(UserError, match=r"weight was not set and is now 3.* or remove data\.mixture\.more\.weight$"):
        check_resumable(flat(compose([MORE])), flat(compose([MORE, "data.mixture.more.weight=3"])))
    with pytest.raises(UserError, match=r"cannot be resumed.*set data\.mixture\.more\.weight=2"):
        check_resumable(
            flat(compose([MORE, "data.mixture.more.weight=2"])), flat(compose([MORE, "data.mixture.more.weight=3"]))
        )


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.mixture.more.weight=0"], "data.mixture.more.weight=0.0 must be above 0"),
        (["data.weight=0", "data.mixture.more.weight=0"], "data.weight=0.0 must be above 0"),
        (["data.weight=nan"], "data.weight=nan must be above 0"),
        (["data.mixture.more.weight=heavy"], "data.mixture.more.weight must be a number"),
        (["data.weight=1e300"], "data.weight=1e+300 must be above 0 and at most 1000000"),
        (["data.temperature=0.001"], "data.temperature=0.001 must be a number from 1 on"),
        (["data.temperature=-1"], "data.temperature=-1 must be a number from 1 on"),
        (["data.mixture.more.wait=2"], "no setting data.mixture.more.wait; did you mean tag|weight"),
        (["data.mixture.more.corpus=x"], "there is no setting data.mixture.more.corpus"),
        (["data.mixture.more.engine=processes"], "there is no setting data.mixture.more.engine"),
        (["data.mixture.more.train=a.en"], "data.mixture.more.train must be a list"),
        (["data.mixture.more.train=[]"], "data.mixture.more.train is empty"),
        (["data.mixture.more.max_ratio=0.5"], "data.mixture.more.max_ratio=0.5 would drop every pair"),
        (["data.mixture.more.target_lang=trees"], "all corpora or none must have target_lang=trees"),
        (["data.mixture.more.tag='a b'"], "must be one word"),
        (["data.mixture.more=3"], "data.mixture.more must be settings"),
        (["data.mixture.main.train=[a,b]"], "main is the name of the corpus of data.train"),
        (["data.mixture={a.b: {train: [a,b]}}"], "'a.b' must be a name of letters"),
        (["data.mixture={../x: {train: [a,b]}}"], "'../x' must be a name of letters"),
        (["data.mixture={x: {train: [a,b], 7: 8}}"], "there is no setting data.mixture.x.7"),
    ],
)
def test_mistakes_are_one_line(overrides: list[str], message: str) -> None:
    found = error_message(MORE, *overrides)
    assert any(part in found for part in message.split("|"))
