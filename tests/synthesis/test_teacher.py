"""`nmt synthesize` with a teacher: whatever its API does, no answer is lost, paid for twice, or bad."""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nmt
from nmt.cli import main
from nmt.synthesis import chat
from nmt.text.language import language_identifier
from tests.imports import marian
from tests.integration.toy import call, pairs, refuse, succeed
from tests.quick_processes import wait_for
from tests.synthesis.chat_stub import CUT, HANG, RESET, ChatStub, Identifier, chat_stub, german

SECRET = "sk-very-secret"
LINES = [source.partition(" ")[2] + f" {number}" for number, (source, _) in enumerate(pairs(24, 5))]
PRICE = ["teacher.price=[1,10]"]
"""60 and 10 tokens cost 0.00016."""
Words = list[str]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = SimpleNamespace(from_model_file=lambda _, norm_probs: Identifier())
    for name in ("py3langid", "py3langid.langid"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(LanguageIdentifier=made, MODEL_FILE=""))
    language_identifier.cache_clear()
    monkeypatch.setattr(chat, "FIRST_WAIT", 0.01)
    monkeypatch.setenv(chat.KEY, SECRET)
    yield
    language_identifier.cache_clear()


@pytest.fixture
def stub() -> Iterator[ChatStub]:
    with chat_stub() as running:
        yield running


@pytest.fixture
def words(stub: ChatStub, tmp_path: Path) -> Words:
    return asking(stub, tmp_path, LINES)


def asking(stub: ChatStub, folder: Path, lines: Words) -> Words:
    (folder / "text.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [
        "synthesize", f"teacher.url={stub.url}", "teacher.model=big", "teacher.requests=4",
        f"input={folder / 'text.en'}", f"output={folder / 'made'}", f"paths.outputs={folder / 'outputs'}",
    ]  # fmt: skip


def rows(folder: Path) -> list[dict[str, Any]]:
    file = folder / "made" / "train-00000-of-00001.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def expected(lines: Words = LINES) -> list[dict[str, Any]]:
    return [{"en": line, "de": german(line)} for line in lines]


def test_what_fails_is_asked_again_and_nothing_else(
    stub: ChatStub, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "MAX_SECONDS", 2.0)
    failures = [
        (429, "slow down"), (500, "oops"), (503, "<html>"), HANG, RESET, CUT, "nonsense", "{}", "[]", '{"choices": []}',
        '{"choices": [{"message": null}]}', '{"choices": [{"message": {"content": 7}}]}', "[" * 100_000, (408, ""),
        '{"choices": [{"message": {}}], "usage": {"prompt_tokens": 1e999}}',
    ]  # fmt: skip
    stub.failures = {line: [failure] for line, failure in zip(LINES, failures, strict=False)}
    stub.failures[LINES[-1]] = [(500, "oops"), RESET, (502, ""), "{}"]
    said = call(words)
    assert said.returncode == 0, said.stderr
    assert "24 different lines, 24 to translate" in said.stdout
    assert rows(tmp_path) == expected()
    assert stub.answered == dict.fromkeys(LINES, 1)
    assert stub.most_busy <= 4
    assert "0 to translate" in succeed(words)
    assert rows(tmp_path) == expected()
    assert stub.answered == dict.fromkeys(LINES, 1)
    assert stub.keys == {f"Bearer {SECRET}"}
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
    assert SECRET not in said.stdout + said.stderr


def in_two_seconds() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)


def test_all_requests_wait_as_long_as_the_server_asks(stub: ChatStub, words: Words, tmp_path: Path) -> None:
    stub.failures = {LINES[0]: [(429, "slow down", "0.4")], LINES[1]: [(503, "", in_two_seconds)]}
    succeed([*words, "teacher.requests=1"])
    (first, second), (third, fourth) = stub.times[LINES[0]], stub.times[LINES[1]]
    assert second - first >= 0.4
    assert fourth - third >= 0.9  # a date has whole seconds
    assert rows(tmp_path) == expected()


def test_a_killed_process_loses_no_answer_and_repeats_none(stub: ChatStub, words: Words, tmp_path: Path) -> None:
    stub.seconds = 0.02
    process = get_context("fork").Process(target=main, args=(words,))
    process.start()
    journal = tmp_path / "made" / "answers.journal"
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 5)
    process.kill()
    process.join()
    content = journal.read_bytes()
    done = content[: content.rfind(b"\n") + 1].count(b"\n")
    assert done < len(LINES)
    journal.write_bytes(content[: content.rfind(b"\n") + 1] + b'{"key": "torn')
    stub.over.wait(0.1)  # for the answers on the way
    before, stub.seconds = sum(stub.answered.values()), 0.0
    assert f"{len(LINES) - done} to translate" in succeed(words)
    assert sum(stub.answered.values()) == before + len(LINES) - done
    assert rows(tmp_path) == expected()


def test_another_prompt_is_asked_again_and_a_longer_text_only_in_part(
    stub: ChatStub, words: Words, tmp_path: Path
) -> None:
    succeed(words)
    more = [*LINES, LINES[0], "", "a new man 99"]
    words = asking(stub, tmp_path, more)
    assert "1 to translate" in succeed(words)
    assert rows(tmp_path) == expected([*LINES, "a new man 99"])
    assert "25 to translate" in succeed([*words, "teacher.prompt='In {target}:\n{text}'"])
    assert stub.bodies[-1]["messages"][0]["content"].startswith("In German:\n")
    assert "begun with another teacher.model (big, not small)" in refuse([*words, "teacher.model=small"])


BAD: dict[str, list[Any]] = {
    "refusal": ["I'm sorry, but I can't assist with that.", ("der mann", "content_filter")],
    "empty": ["", "  \n", "<think>I know it.</think>"],
    "cut short": [("der mann", "length")],
    "comments": [
        "Translation: der mann",
        "der mann\n\n(Note: literal.)",
        '"der mann"',
        "Hier ist die Übersetzung: der mann",
    ],
    "markup": ["<b>der</b> mann", "der **mann**", "der \ufffd mann", "der \x07 mann", "der \ud800 mann"],
    "length": ["der mann " * 20],
    "copies": ["the man"],
    "language": ["the king the tree", "le roi voit un arbre"],
}


def test_bad_answers_are_dropped_and_counted(stub: ChatStub, tmp_path: Path) -> None:
    bad = [(fault, answer) for fault, answers in BAD.items() for answer in answers]
    lines = [f"the man {number} \ufffd" if fault != "copies" else "the man" for number, (fault, _) in enumerate(bad)]
    stub.answers = {line: answer for line, (_, answer) in zip(lines, bad, strict=True)}
    markup = "<b>the</b> %s man sees {a} tree"
    good = {markup: german(markup), "the king": "<think>Easy.</think>\n\nder koenig"}
    stub.answers["the king"] = good["the king"]
    said = succeed([*asking(stub, tmp_path, [*lines, *good]), "data.max_words=100"])
    for fault, answers in BAD.items():
        assert f"{len(answers)} for {fault}" in said
    assert [row["en"] for row in rows(tmp_path)] == list(good)
    assert rows(tmp_path)[1]["de"] == "der koenig"


@pytest.mark.parametrize("ignores_n", [False, True])
def test_the_candidate_that_agrees_with_the_others_is_kept(stub: ChatStub, tmp_path: Path, ignores_n: bool) -> None:
    line, stub.ignores_n = "the old man sees a tree", ignores_n
    stub.answers[line] = ["der junge koenig sieht einen stein", german(line), "der alte mann sieht baum", "the old man"]
    mbr = ["decoding.strategy=mbr", "decoding.candidates=4", "decoding.temperature=0.7"]
    succeed([*asking(stub, tmp_path, [line]), *mbr])
    (row,) = rows(tmp_path)
    assert row["de"] == german(line)
    assert 50 < row["score"] < 100
    assert [body["n"] for body in stub.bodies] == ([4, 3, 2, 1] if ignores_n else [4])
    assert stub.bodies[0]["temperature"] == 0.7


class Shortest:
    """Prefers short translations, in the place of a model of COMET."""

    def requires_references(self) -> bool:
        return False

    def predict(self, data: list[dict[str, str]], **_: object) -> SimpleNamespace:
        return SimpleNamespace(scores=[1 / len(each["mt"]) for each in data])


def test_the_candidate_that_comet_prefers_is_kept(
    stub: ChatStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.evaluation.comet.find_checkpoint", Path)
    monkeypatch.setattr("nmt.evaluation.comet.load", lambda _: Shortest())
    stub.answers = {"the old man": ["der alte mann", "der mann"], "the king": ["der koenig", "koenig der stein"]}
    search = ["decoding.strategy=mbr", "decoding.candidates=2", "evaluation.comet=qe"]
    succeed([*asking(stub, tmp_path, list(stub.answers)), *search])
    assert rows(tmp_path) == [
        {"en": "the old man", "de": "der mann", "score": 12.5}, {"en": "the king", "de": "der koenig", "score": 10.0},
    ]  # fmt: skip


def test_terms_and_examples_are_shown_to_the_teacher(stub: ChatStub, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("tree\tBaum\n", encoding="utf-8")
    (tmp_path / "examples.tsv").write_text("a man\tein Mann\na tree\tein Baum\n", encoding="utf-8")
    words = asking(stub, tmp_path, ["the tree", "the man"])
    succeed([*words, f"decoding.terms={tmp_path / 'terms.tsv'}", f"teacher.examples={tmp_path / 'examples.tsv'}"])
    turns = next(body["messages"] for body in stub.bodies if body["messages"][-1]["content"].endswith("the tree"))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]
    assert [turn["content"] for turn in turns[1::2]] == ["ein Mann", "ein Baum"]
    assert "English sentence into German" in turns[0]["content"]
    assert turns[4]["content"].startswith("The translation must contain: Baum\n")
    assert "must contain" not in turns[0]["content"]


def test_the_budget_ends_the_work_in_time(stub: ChatStub, words: Words, tmp_path: Path) -> None:
    said = succeed([*words, *PRICE, "teacher.budget=0.003"])
    paid = sum(stub.answered.values())
    assert 0.0015 < paid * 0.00016 <= 0.003
    assert f"{len(LINES) - paid} have none: run the same command again, with more than teacher.budget=0.003" in said
    assert len(rows(tmp_path)) == paid
    assert "have none" in succeed([*words, *PRICE, "teacher.budget=0.003"])
    assert sum(stub.answered.values()) <= 0.003 / 0.00016
    said = succeed([*words, *PRICE])
    assert "24 lines have an answer for 0.00384" in said
    assert stub.answered == dict.fromkeys(LINES, 1)


def test_candidates_are_kept_and_paid_for_although_the_next_one_is_refused(
    stub: ChatStub, words: Words, tmp_path: Path
) -> None:
    stub.ignores_n, stub.failures = True, {line: [None, (400, "content policy")] for line in LINES}
    mbr = ["decoding.strategy=mbr", "decoding.candidates=2", "teacher.requests=1"]
    succeed([*words, *PRICE, *mbr, "teacher.budget=0.002"])
    paid = sum(stub.answered.values())
    assert 0 < paid * 0.00016 <= 0.002
    assert len(rows(tmp_path)) == paid


def test_a_teacher_that_does_not_answer_is_given_up_in_one_line(
    stub: ChatStub, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "ATTEMPTS", 2)
    monkeypatch.setattr(chat, "MAX_LOST", 3)
    for failure, said in {
        (500, f"oops {SECRET}"): "does not answer any more (HTTP 500: oops ***)",
        (401, f"wrong key {SECRET}"): "refuses requests (HTTP 401: wrong key ***)",
        (404, "no model\nbig"): "refuses requests (HTTP 404: no model big)",
        (400, "no temperature"): "does not answer any more (HTTP 400: no temperature)",
        RESET: "does not answer any more (",
        "{}": "does not answer any more (no answer of a chat API, HTTP 200: {})",
        (429, "later", "7200"): "asks to wait 7,200 s (HTTP 429: later)",
    }.items():
        stub.always = failure
        error = refuse(words)
        assert said in error
        assert "run the same command again" in error
        assert SECRET not in error
    stub.always, stub.usage = None, {}
    assert "does not say what an answer costs" in refuse([*words, *PRICE, "teacher.budget=1"])
    assert "cannot be reached (ConnectError" in refuse([*words, "teacher.url=http://127.0.0.1:9/v1"])
    assert not list(tmp_path.rglob("train-*"))
    succeed(words)
    assert rows(tmp_path) == expected()


def test_a_line_that_is_never_answered_does_not_stop_the_others(
    stub: ChatStub, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "ATTEMPTS", 2)
    stub.failures = {LINES[3]: [(400, "content policy")], LINES[5]: [(500, "")] * 2}
    assert "2 have none: run the same command again" in succeed(words)
    assert rows(tmp_path) == expected([line for line in LINES if line not in (LINES[3], LINES[5])])
    assert "2 to translate" in succeed(words)
    assert rows(tmp_path) == expected()


def test_settings_of_the_teacher_that_cannot_work_are_refused(
    words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for changes, said in {
        ("teacher.url=ftp://host",): "teacher.url must be http://HOST/PATH",
        (f"teacher.url=http://me:{SECRET}@host/v1",): "teacher.url must be http://HOST/PATH",
        ("teacher.model=''",): "set teacher.model",
        ("teacher.prompt=Translate",): "must contain {text}",
        ("teacher.price=[1,2,3]",): "teacher.price=[1,2,3] must be one or two numbers",
        ("teacher.budget=5",): "needs teacher.price",
        (f"teacher.examples={tmp_path / 'none'}",): "none",
        ("data.source_lang=xx", "data.min_language_probability=0.3"): "cannot check xx",
        ("teacher.url=''",): "big is no folder: name one",
    }.items():
        error = refuse([*words, *changes])
        assert said in error
        assert SECRET not in error
    monkeypatch.setenv(chat.KEY, "two\nlines")
    error = refuse(words)
    assert "NMT_TEACHER_KEY has characters that no key has" in error
    assert "two" not in error


def test_a_model_in_a_folder_translates_as_the_run_that_it_is_imported_as(tmp_path: Path) -> None:
    (tmp_path / "hf").mkdir()
    marian.make(tmp_path / "hf", "unigram", shared=True)
    lines = list(dict.fromkeys(marian.SOURCE))
    (tmp_path / "text.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    teacher = [f"teacher.model={tmp_path / 'hf'}", "decoding.beam=1", "runtime.device=cpu"]
    words = ["synthesize", f"input={tmp_path / 'text.en'}", f"output={tmp_path / 'made'}", *teacher]
    succeed(words)
    succeed(["import", f"input={tmp_path / 'hf'}", "name=same", f"paths.outputs={tmp_path}"])
    translations = nmt.load(tmp_path / "same", device="cpu", precision="fp32").translate(lines, beam=1)
    journal = (tmp_path / "made" / "answers.journal").read_text(encoding="utf-8")
    assert [json.loads(row)["answers"][0][0] for row in journal.splitlines()] == [each.text for each in translations]
    (tmp_path / "made" / "train-00000-of-00001.jsonl").unlink()  # a folder without shards may change its languages
    assert f"{len(lines)} to translate" in succeed([*words, "data.target_lang=fr"])
