"""scripts/dev/test_all: stages that fail, time limits, the last line, and the commands that it takes from documents."""

import json
import re
import shutil
import sys
import time
from pathlib import Path
from threading import Barrier

import pytest

from nmt.config.compose import compose
from test_all.__main__ import STAGES, main
from test_all.chains import FLOOR, check_floor
from test_all.documents import BEFORE, FORGET, RUNS, run_document
from test_all.environments import SKIPPED, run_tests
from test_all.exclusions import NOT_RUN, reason_not_to_run, stale_exclusions
from test_all.old_versions import END, check_steps
from test_all.small_clone import shrink_settings
from test_all.stages import AT_ONCE, ROOT, Context, Result, SkipStage, Stage, StageError, run_stages, summary
from test_all.statements import DOCUMENTS, Statement, split_block, statements
from tests.reporting import skipped_parts


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path, tmp_path / "log", seconds=60)


def stage(name: str, run: object, seconds: float = 60) -> Stage:
    return Stage(name, f"what {name} does", run, 1, seconds / 60)  # type: ignore[arg-type]


def failing(context: Context) -> None:
    context.run(sys.executable, "-c", "print('the cause'); raise SystemExit(3)")


def broken(_: Context) -> None:
    raise ValueError("a mistake of the stage")


def skipping(_: Context) -> None:
    raise SkipStage("there is no history")


def skipping_tests(context: Context) -> None:
    context.skipped["tests: needs a CUDA device"] += 12


def test_a_failed_stage_stops_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [stage("one", failing), stage("two", broken), stage("three", skipping), stage("four", skipping_tests)]
    results = run_stages(chosen)
    assert [(each.name, each.outcome) for each in results] == [
        ("one", "failed"), ("two", "failed"), ("three", "skipped"), ("four", "passed"),
    ]  # fmt: skip
    printed = capsys.readouterr().out
    assert "  | the cause" in printed
    assert "exit code 3: " in printed
    assert "ValueError: a mistake of the stage" in printed
    logs = [Path(line.partition(": ")[2]) for line in printed.splitlines() if "the whole log" in line]
    assert sum("the cause" in log.read_text() for log in logs) == 1
    for log in logs:
        log.unlink()


def test_two_stages_run_at_a_time_after_those_that_install() -> None:
    both = Barrier(2)
    order: list[str] = []

    def meeting(context: Context) -> None:
        order.append("meets")
        both.wait(timeout=30)
        context.run(sys.executable, "-c", "sum(range(10**6))")

    def installing(_: Context) -> None:
        order.append("installs")

    first = Stage("extras", "installs", installing, 1, 1, installs=True)
    results = run_stages([stage("a", meeting), first, stage("b", meeting)])
    assert [(each.name, each.outcome) for each in results] == [(name, "passed") for name in ("a", "extras", "b")]
    assert order == ["installs", "meets", "meets"]
    assert all(0.0 < each.cpu_seconds < 30.0 for each in results if each.name != "extras")


def test_last_line_says_what_was_skipped_and_why() -> None:
    results = [
        Result("tests", "passed", 61.0, 90.0, {"tests: needs a CUDA device": 12}),
        Result("old", "skipped", 0.2, 0.1, {"stage old: no history": 1}),
        Result("demo", "failed", 9.0),
    ]
    lines = summary(results, 70.2)
    assert [line.split()[:2] for line in lines[1:4]] == [["tests", "passed"], ["old", "skipped"], ["demo", "failed"]]
    assert lines[4:] == [
        "test-all: 1 of 3 stages passed in 1 min 10 s; skipped: 1 stage old: no history; 12 tests: needs a CUDA device"
    ]
    assert summary([Result("demo", "passed", 2.0)], 2.0)[-1].endswith(
        "1 of 1 stages passed in 0 min 2 s; skipped: nothing"
    )


@pytest.mark.slow
def test_a_stage_and_what_it_has_started_end_after_its_time(tmp_path: Path) -> None:
    late = ["sh", "-c", f"sleep 3; touch {tmp_path}/late"]
    program = f"import subprocess, time; subprocess.Popen({late}); time.sleep(30)"
    began = time.monotonic()
    (result,) = run_stages([stage("slow", lambda context: context.run(sys.executable, "-c", program), seconds=1)])
    assert result.outcome == "failed"
    assert time.monotonic() - began < 20
    time.sleep(max(0.0, began + 5 - time.monotonic()))
    assert not (tmp_path / "late").exists()


def test_commands_get_their_text_and_not_the_variables_of_make(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGS", "x")
    monkeypatch.setenv("MAKEFLAGS", "n")
    program = "import os, sys; print(sys.stdin.read(), [n for n in ('ARGS', 'MAKEFLAGS', 'MORE') if n in os.environ])"
    assert context.run(sys.executable, "-c", program, text="given", environment={"MORE": "1"}) == "given ['MORE']\n"
    with pytest.raises(StageError, match="exit code 1"):
        context.run(sys.executable, "-c", "raise SystemExit(1)")
    assert context.run(sys.executable, "-c", "print(2); raise SystemExit(1)", codes=(1,)) == "2\n"


def test_unknown_stage_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["test_all", "--only", "weel", "old"])
    assert main() == 2
    error = capsys.readouterr().err
    assert error.startswith("test_all: there is no stage weel; the stages are extras, clients, tests, ")
    assert error.count("\n") == 1


def test_list_has_a_line_per_stage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["test_all", "--list"])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [each.name for each in STAGES]
    assert all(line.split()[2] == "min" for line in lines)
    assert sum(each.minutes for each in STAGES) <= AT_ONCE * 45


@pytest.mark.parametrize(
    ("words", "started"),
    [
        (["--", "-k", "beam"], [("tests", ["-k", "beam"])]),
        (["--only", "tests", "old", "--", "-x"], [("tests", ["-x"]), ("old", ["-x"])]),
        (["--only", "old", "extras"], [("extras", []), ("old", [])]),
        ([], [(each.name, []) for each in STAGES]),
    ],
)
def test_words_after_two_dashes_go_to_pytest(
    words: list[str], started: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, list[str]]] = []

    def noting(name: str) -> Stage:
        return stage(name, lambda context: noted.append((name, list(context.words))))

    monkeypatch.setattr("test_all.__main__.STAGES", tuple(noting(each.name) for each in STAGES))
    monkeypatch.setattr(sys, "argv", ["test_all", *words])
    assert main() == 0
    assert sorted(noted) == sorted(started)


def test_reasons_for_which_pytest_skips_are_counted(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["needs a CUDA device"] * 3 + ["needs the extra comet"] * 2 + ["needs a browser", "no EVALB"]
    output = "".join(f"{line}\n" for line in ["...s", *skipped_parts(reasons), "5 passed, 7 skipped in 1.00s"])
    monkeypatch.setattr(Context, "run", lambda *_, **__: output)
    run_tests(context)
    assert context.skipped == {"tests: needs a CUDA device": 3, "tests: needs a browser": 1, "tests: no EVALB": 1}
    assert len(SKIPPED.findall(output)) == 4


@pytest.mark.parametrize("closing", ["2 failed, 7 passed in 1.00s", "7 passed, 1 error in 61.00s (0:01:01)"])
def test_skipped_tests_are_counted_if_others_fail(
    closing: str, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = f"3 skipped: needs a browser: apt-get install chromium\n{closing}\n"
    monkeypatch.setattr(Context, "run", lambda *_, **__: output)
    with pytest.raises(StageError, match="tests failed"):
        run_tests(context)
    assert context.skipped == {"tests: needs a browser": 3}


def test_blocks_are_split_into_commands_as_they_are_written() -> None:
    block = (
        "make demo    # all of it\n\n# only a comment\n"
        'make all ARGS="a=1\n    b=2" &&\nmake eval\n'
        "nmt train \\\n    c=3\necho 'it is' | nmt translate\n"
    )
    assert list(split_block(block)) == [
        "make demo    # all of it",
        'make all ARGS="a=1\n    b=2" &&\nmake eval',
        "nmt train \\\n    c=3",
        "echo 'it is' | nmt translate",
    ]
    with pytest.raises(ValueError, match="has no end"):
        list(split_block('make all ARGS="a=1\n'))


FOUND = [each for document in DOCUMENTS for each in statements(document)]


def test_every_block_of_the_documents_can_be_split_and_most_commands_are_run() -> None:
    assert {"README.md", "usage.md", "synthetic_text.md"} <= {each.document for each in FOUND}
    assert sum(not reason_not_to_run(each.text) for each in FOUND) > len(FOUND) / 2


def test_every_exclusion_belongs_to_a_command_and_has_a_reason() -> None:
    assert stale_exclusions(FOUND) == []
    assert all(NOT_RUN.values())
    assert stale_exclusions([Statement("README.md", "make demo")]) == [each for each in NOT_RUN if each != "make demo"]


def test_a_failed_command_of_a_document_stops_no_other(context: Context, capsys: pytest.CaptureFixture[str]) -> None:
    clone = context.folder / "clone"
    clone.mkdir()
    commands = ["touch one", "echo 'nmt: it is wrong'\nexit 3", "test -e one && touch two", "false | true"]
    failed = run_document(context, clone, "usage.md", commands)
    assert [each.splitlines()[0] for each in failed] == ["usage.md: echo 'nmt: it is wrong'", "usage.md: false | true"]
    assert "nmt: it is wrong" in failed[0]
    assert (context.folder / "usage.md" / "two").exists()
    assert "FAILED: echo 'nmt: it is wrong' nmt: it is wrong\n" in capsys.readouterr().out


def test_a_document_gets_the_folders_of_a_command_that_ran_before_all(context: Context) -> None:
    clone = context.folder / "clone"
    (clone / "outputs/own").mkdir(parents=True)
    (clone / "data/own").mkdir(parents=True)
    (clone / "outputs/own/made").touch()
    command = 'make all ARGS="experiment=own data.train=[train.en,train.de]"'
    assert command in RUNS
    commands = ["rm outputs/own/made", "touch outputs/own/other", f"{command}  # again", "ls outputs/own > found"]
    assert run_document(context, clone, "usage.md", commands) == []
    assert (context.folder / "usage.md/found").read_text() == "made\n"


def test_every_preparation_belongs_to_a_document_or_a_command() -> None:
    assert set(BEFORE) <= {each.document for each in FOUND}
    for start in FORGET:
        assert any(each.text.startswith(start) and not reason_not_to_run(each.text) for each in FOUND), start


@pytest.mark.slow
def test_small_settings_are_valid_and_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = tmp_path / "src/nmt/features/demo/source.py"
    demo.parent.mkdir(parents=True)
    shutil.copy(ROOT / "src/nmt/features/demo/source.py", demo)
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    shrink_settings(tmp_path)
    monkeypatch.setattr("nmt.config.compose.conf_folder", lambda: tmp_path / "conf")
    for file in sorted((tmp_path / "conf" / "experiment").rglob("*.yaml")):
        name = str(file.relative_to(tmp_path / "conf" / "experiment").with_suffix(""))
        config = compose([f"experiment={name}"])
        assert config.name == name
        assert (config.model.layers, config.training.steps) == (1, 2000)
        assert config.data.source != "hub"
    assert '"train": 1000,' in demo.read_text()


def test_demo_below_the_floor_fails(tmp_path: Path) -> None:
    file = tmp_path / "test.json"
    for score, fails in ((FLOOR, False), (FLOOR - 0.01, True)):
        file.write_text(json.dumps({"bleu": {"score": score}}))
        if fails:
            with pytest.raises(StageError, match=r"93\.99 BLEU on test"):
                check_floor(file, "test")
        else:
            check_floor(file, "test")


def test_a_run_that_begins_again_is_not_resumed(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    for steps, resumed in (([*range(1, END + 1)], True), ([1, 2, 3, 4, *range(1, END + 1)], False), ([], False)):
        metrics.write_text("".join(json.dumps({"event": "train", "step": step}) + "\n" for step in steps))
        if resumed:
            check_steps(metrics)
        else:
            with pytest.raises(StageError, match="not resumed"):
                check_steps(metrics)


def test_contributing_says_what_the_gate_runs() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (yes|no)\b[^|]*\|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == [each.name for each in STAGES]
    found = re.search(r"--only ([\w ]+)'", (ROOT / ".ci" / "run").read_text())
    assert found
    assert found[1].split() == [name for name, said in rows if said == "yes"]
