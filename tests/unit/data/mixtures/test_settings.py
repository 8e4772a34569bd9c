"""The settings of a mixture of corpora, and mistakes in them."""

import pytest

from nmt.config.compose import compose
from nmt.config.data import corpora_of
from nmt.config.saved import check_resumable, from_yaml, to_yaml
from nmt.errors import UserError
from tests.unit.config.test_settings import MORE, flat


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
