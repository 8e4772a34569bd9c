"""The web export: its files, and its scripts under Node compared with our own tokenizer, search and model."""

import base64
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.decoding.beam import NEVER, NextTokenScorer, beam_search
from nmt.decoding.next_words import likely_words, next_words
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.word_details import word_attention
from nmt.errors import UserError
from nmt.features.exports.web.engine import WebEngine
from nmt.features.exports.web.exporter import MODEL, WebExporter
from nmt.features.exports.web.files import PACKAGE, runtime_files
from nmt.page.sentences import sentences
from nmt.text.special import BOS, EOS
from nmt.text.white_space import WHITE_SPACE
from nmt.text.word_pieces import match_words
from tests.features.exports.clients import needs_node
from tests.features.exports.test_onnx import make_plain_tokenizer
from tests.features.exports.web_folder import (
    DECODING,
    ask,
    needs_runtime,
    stand_ins,
    write_export,
    write_scripts,
)
from tests.unit.small_models import LINES, make_model

CPU = torch.device("cpu")
POSITIONS = 1024
MODELS: list[dict[str, object]] = [
    {"norm_placement": "pre", "positions": "rotary"},
    {"d_k": 6, "d_v": 10, "kv_heads": 2, "decoder_layers": 3},
    {"positions": "relative", "activation": "swiglu"},
]


def sentences_of_words(count: int) -> list[str]:
    """Return sentences of random length, made of the words that the tokenizer has seen."""
    random = np.random.default_rng(3)
    words = sorted({word for line in LINES for word in line.split()})
    return [" ".join(random.choice(words, random.integers(1, 12))) for _ in range(count)]


# The files


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    tokenizer = make_plain_tokenizer()
    return write_scripts(tmp_path, tokenizer, make_model(tokenizer))


def test_the_listing_has_the_size_and_digest_of_every_file_but_the_service_worker(scripts: Path) -> None:
    listing = json.loads((scripts / "files.json").read_text())
    files = {path.relative_to(scripts).as_posix(): path for path in scripts.rglob("*") if path.is_file()}
    assert set(listing["files"]) == set(files) - {"files.json", "service-worker.js"}
    for name, listed in listing["files"].items():
        content = files[name].read_bytes()
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        assert listed == {"bytes": len(content), "sha256": digest}
    assert f'VERSION = "{listing["version"]}"' in (scripts / "service-worker.js").read_text()


def test_another_model_is_another_version(tmp_path: Path, scripts: Path) -> None:
    tokenizer = make_plain_tokenizer()
    (tmp_path / "other").mkdir()
    other = write_scripts(tmp_path / "other", tokenizer, make_model(tokenizer, layers=1))
    versions = {json.loads((folder / "files.json").read_text())["version"] for folder in (scripts, other)}
    assert len(versions) == 2


def test_every_file_that_a_script_or_the_page_names_is_there(scripts: Path) -> None:
    for path in [*scripts.glob("*.js"), scripts / "index.html"]:
        named = re.findall(r'(?:from |src=|href=|new Worker\(|register\()"(?:\./)?([^"]+)"', path.read_text())
        assert [name for name in named if not (scripts / name).is_file()] == []


def test_the_page_runs_nothing_inline_and_names_no_other_host(scripts: Path) -> None:
    page = (scripts / "index.html").read_text()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page)
    assert policy.startswith("default-src 'none'; script-src 'self' 'wasm-unsafe-eval';")
    assert "unsafe-inline" not in policy
    assert page.index("Content-Security-Policy") < page.index("<link")
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=|\$\{", page)
    for path in [*scripts.glob("*.js"), *scripts.glob("*.css"), scripts / "index.html"]:
        assert not re.search(r"https?://", path.read_text()), path


@pytest.mark.parametrize("forbidden", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("])
def test_scripts_never_make_markup_of_text(scripts: Path, forbidden: str) -> None:
    assert [path for path in scripts.glob("*.js") if forbidden in path.read_text()] == []


def test_a_missing_runtime_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"there is no node_modules/{PACKAGE}/dist/\S+: run `npm install --no-save "):
        runtime_files("")
    with pytest.raises(UserError, match=r"there is no elsewhere/dist/\S+: .* export.onnxruntime_web=FOLDER$"):
        runtime_files("elsewhere")
    found = stand_ins(tmp_path / "node_modules")
    assert runtime_files("") == {name: path.relative_to(tmp_path) for name, path in found.items()}
    monkeypatch.setenv("HOME", str(tmp_path))
    assert runtime_files(f"~/node_modules/{PACKAGE}") == found


# The scripts without a model


@pytest.mark.slow
@needs_node
def test_the_tokenizer_splits_and_joins_as_our_own(scripts: Path) -> None:
    tokenizer = make_plain_tokenizer()
    lines = [
        *sentences_of_words(50),
        "",
        " ",
        "  two  spaces ",
        "unknown: ßé日 Z",
        "catscatscats",
        "a",
        "</s> <unk>",
        "▁a▁",
        f"a{WHITE_SPACE}a",
        *(f"a{space}cat{space}{space}" for space in WHITE_SPACE),
    ]
    random = np.random.default_rng(1)
    ids = [random.integers(4, tokenizer.target_size, 9).tolist() for _ in range(50)]
    ids += [[0, 5], [5, 0, 0, 6], [0], []]
    found = ask(scripts, "tokens", lines=lines, ids=ids)
    assert found["ids"] == tokenizer.encode_source(lines)
    assert found["inputs"] == tokenizer.encode_input(lines)
    assert found["texts"] == [tokenizer.decode(each) for each in ids]


@pytest.mark.slow
@needs_node
def test_text_is_split_into_the_sentences_of_the_server(scripts: Path) -> None:
    texts = [
        "", " \n\t ", "A dog. A cat! Really?  Yes…", "one line\nanother one\r\n\r\nthe last", "no end",
        'He said: "Stop." She did (at once.) Then', "Dr. Who met J. Smith in the U.S. Army. He left.",
        "Am 3. Mai, z.B. Montag, usw. ging es. 1990. Da", "it costs 3.50 dollars. approx. that",
        "你好。今天天气很好！「是的。」好", "\U0001f600 A dog. \U0001f600 B.", "word " * 300, "x" * 1500,
        "\U0001f600" * 1500, "x" + "\U0001f600" * 601, "\U0001f600\U0001f601 " * 300, "Am \U0001d7d9\U0001d7da. Mai",
        "Ende. «Ja.» Über uns. été. Été!", "The result is 5². It is 3.",
    ]  # fmt: skip
    expected = [[text[span.start : span.end] for span in sentences(text)] for text in texts]
    assert ask(scripts, "split", texts=texts) == expected


def table_of(size: int, seed: int) -> Tensor:
    """Return scores of each token after each other one."""
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 2, (size, size)).astype(np.float32))


def scorer_of(table: Tensor) -> NextTokenScorer:
    """Return a scorer of the next token by the last one alone."""
    return lambda tokens, parents: table[tokens]


def begin_with(scorer: NextTokenScorer, tokens: list[int]) -> NextTokenScorer:
    """Return a scorer under which sentences begin with tokens that are certain."""
    wanted = iter(tokens)

    def begun(last: Tensor, parents: Tensor) -> Tensor:
        scores = scorer(last, parents)
        token = next(wanted, None)
        return scores if token is None else torch.full_like(scores, NEVER).index_fill(1, torch.tensor([token]), 0.0)

    return begun


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("settings", [(1, 0.0, 1), (4, 0.6, 1), (4, 0.6, 4), (5, 1.5, 2), (16, 0.0, 3)])
@pytest.mark.parametrize("begun", [[], [7, 9]])
def test_the_search_finds_the_hypotheses_of_our_own(
    scripts: Path, settings: tuple[int, float, int], begun: list[int]
) -> None:
    beam, alpha, nbest = settings
    for seed, limit in ((1, 12), (2, 4), (3, 30)):
        table = table_of(40, seed)
        scorer = begin_with(scorer_of(table), begun)
        (expected,) = beam_search(scorer, torch.tensor([limit]), beam=beam, alpha=alpha, nbest=nbest)
        asked = {"limit": limit, "beam": beam, "alpha": alpha, "nbest": nbest}
        found = ask(scripts, "beam", table=table.tolist(), settings=asked, begun=begun)
        assert [each["tokens"] for each in found] == [each.tokens for each in expected]
        for name, ours in (("score", "score"), ("logProbability", "log_probability")):
            numbers = [getattr(each, ours) for each in expected]
            assert [each[name] for each in found] == pytest.approx(numbers, abs=1e-4)


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("room", [1, 2, 3, 16])
def test_the_next_words_are_those_of_our_own_search(scripts: Path, room: int) -> None:
    pieces = [*["<unk>", "<pad>", "<s>", "</s>"], *(f"{'▁' * (index % 3 == 0)}p{index}" for index in range(36))]
    table, beginning = table_of(len(pieces), 4), [6, 7]
    begins = torch.tensor([piece.startswith("▁") for piece in pieces])
    expected = next_words(scorer_of(table), beginning, begins, 6, room)
    found = ask(scripts, "next", table=table.tolist(), beginning=beginning, pieces=pieces, count=6, room=room)
    assert [each["tokens"] for each in found] == [word.tokens for word in expected]
    assert [each["total"] for each in found] == pytest.approx([word.log_probability for word in expected], abs=1e-4)


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["▁a", "b", "▁", "c", "▁d"], "ab c d"),
        (["▁a", "▁"], "a "),
        (["x", "▁y"], "x y"),
        ([], ""),
        (["▁a", "b"], "a b"),
        (["▁a", "<unk>", "b"], "a ⁇ b"),
        (["▁a", "<unk>", "b", "▁c"], "a\tb c"),
        (["▁a\u00a0b", "▁c"], "a\u00a0b c"),
        (["▁10\u00a00", "00"], "10\u00a0000"),
        (["▁a", "▁", "<unk>", "▁"], "a 😀"),
    ],
)
def test_words_have_the_pieces_of_our_own(scripts: Path, pieces: list[str], text: str) -> None:
    found = ask(scripts, "words", pieces=pieces, text=text)
    assert found == [word._asdict() for word in match_words(pieces, text)]


# The scripts with a model


@pytest.mark.slow
@needs_node
@needs_runtime
@pytest.mark.parametrize("options", MODELS, ids=str)
def test_translations_in_float32_are_those_of_nmt(tmp_path: Path, options: dict[str, object]) -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    model = make_model(tokenizer, **options)
    folder, lines = write_export(tmp_path, tokenizer, model), sentences_of_words(100 if options == MODELS[0] else 20)
    nmt = TorchEngine([model], tokenizer, DECODING, CPU)
    WebExporter().check(model.config)
    expected = [best.tokens for best, *_ in nmt.translate_ids(tokenizer.encode_source(lines))]
    in_python = WebEngine(folder / MODEL, tokenizer, DECODING, POSITIONS, "")
    assert [best.tokens for best, *_ in in_python.translate_ids(tokenizer.encode_source(lines))] == expected
    found = ask(folder, "translate", lines=lines)["found"]
    assert [each["text"] for each in found] == [tokenizer.decode(tokens) for tokens in expected]


@pytest.mark.slow
@needs_node
@needs_runtime
def test_words_attention_and_choices_are_those_of_nmt(tmp_path: Path) -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    model = make_model(tokenizer)
    folder = write_export(tmp_path, tokenizer, model)
    nmt = TorchEngine([model], tokenizer, DECODING, CPU)
    for line, candidates in zip(LINES, ask(folder, "candidates", lines=LINES, beginning=""), strict=True):
        check_candidate(nmt, line, candidates[0])
    expected = likely_words(nmt, LINES[0], "the", 5)
    found = ask(folder, "choices", text=LINES[0], beginning="the", count=5)
    assert [each["text"] for each in found] == [word.text for word in expected]
    assert [each["probability"] for each in found] == pytest.approx([word.probability for word in expected], abs=1e-4)
    (begun,) = ask(folder, "candidates", lines=LINES[:1], beginning="the cat ")
    assert all(each["text"].startswith("the cat") for each in begun)


def check_candidate(nmt: TorchEngine, line: str, found: dict[str, Any]) -> None:
    """Compare the best translation of a line with ours: its words, how probable they are, and their attention."""
    (translation,) = nmt.translate([line], token_scores=True)
    expected = translation.candidates[0]
    assert found["text"] == expected.text
    whole = math.prod(each["probability"] for each in found["words"])
    assert whole == pytest.approx(math.exp(sum(each.log_probability for each in expected.tokens)), rel=1e-3)
    pieces = [each.piece for each in expected.tokens]
    (source,), target = nmt.tokenizer.encode_source([line]), nmt.tokenizer.target_ids(pieces)
    if expected.text.strip():
        (weights,) = nmt.cross_attention([[*source, EOS]], [[BOS, *target]])
        source_words = match_words(nmt.tokenizer.source_pieces(source), line)
        target_words = match_words(pieces, expected.text)
        np.testing.assert_allclose(found["attention"], word_attention(weights, source_words, target_words), atol=1e-4)


def test_the_search_in_python_finds_the_translations_and_scores_of_nmt(tmp_path: Path) -> None:
    """The same graphs as those of the page, so that what is compared at the export is what users get."""
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra onnx")
    from nmt.features.exports.onnx_graphs import write_graphs

    tokenizer = make_plain_tokenizer()
    model = make_model(tokenizer)
    write_graphs(tmp_path, model, POSITIONS, shows_attention=True)
    engine = WebEngine(tmp_path, tokenizer, DECODING, POSITIONS, "")
    ours = TorchEngine([model], tokenizer, DECODING, CPU)
    ids = tokenizer.encode_source(LINES)
    for (found, *_), (expected, *_) in zip(engine.translate_ids(ids), ours.translate_ids(ids), strict=True):
        assert found.tokens == expected.tokens
        assert found.score == pytest.approx(expected.score, abs=1e-4)
        assert not {BOS, EOS}.intersection(found.tokens)
