"""The settings of a mixture of corpora, and mistakes in them."""

import pytest

from nmt.config.compose import compose
from nmt.config.data import corpora_of
from nmt.config.saved import check_resumable, from_yaml, to_yaml
from nmt.errors import ConfigError, UserError
from tests.unit.config.test_settings import flat

MORE = "data.mixture.more.train=[a.en,a.de]"


def test_a_corpus_has_its_own_files_and_the_filters_of_the_main_one() -> None:
    config = compose(
        ["experiment=own", "data.max_words=99", "data.tag=x", MORE, "data.mixture.more.max_ratio=2", "data.weight=3"]
    )
    main, more = (corpus.settings for corpus in corpora_of(config.data).values())
    assert (main.weight, main.tag) == (3.0, "x")
    assert (more.train, more.source, more.max_words, more.max_ratio) == (["a.en", "a.de"], "files", 99, 2.0)
    assert (more.tag, more.weight, more.hold_out, more.valid) == ("", 1.0, 0.0, [])
    assert from_yaml(to_yaml(config)) == config
    assert compose(["data.mixture={more: {train: [a.en,a.de]}}"]) == compose([MORE])


def test_another_weight_is_not_resumed() -> None:
    before, after = (flat(compose([MORE, f"data.mixture.more.weight={weight}"])) for weight in (2, 3))
    with pytest.raises(UserError, match=r"cannot be resumed.*data\.mixture\.more\.weight was 2 and is now 3"):
        check_resumable(before, after)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.mixture.more.weight=0", "data.mixture.more.weight=0.0 must be above 0"),
        ("data.mixture.more.weight=heavy", "data.mixture.more.weight must be a number"),
        ("data.temperature=0.001", "data.temperature=0.001 must be a number from 1 on"),
        ("data.mixture.more.wait=2", "no setting data.mixture.more.wait; did you mean "),
        ("data.mixture.more.engine=processes", "there is no setting data.mixture.more.engine"),
        ("data.mixture.more.train=[]", "data.mixture.more.train is empty"),
        ("data.mixture.more.target_lang=trees", "all corpora or none must have target_lang=trees"),
        ("data.mixture.more.tag='a b'", "must be one word"),
        ("data.mixture.more=3", "data.mixture.more must be settings"),
        ("data.mixture.main.train=[a,b]", "'main' must be a name of letters, digits, _ and -, and not main"),
        ("data.mixture={../x: {train: [a,b]}}", "'../x' must be a name of letters"),
    ],
)
def test_mistakes_are_one_line(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose([MORE, override])
    assert message in str(caught.value)
