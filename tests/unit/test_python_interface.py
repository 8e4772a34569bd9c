"""`import nmt` and `nmt.load`, as docs/reference.md describes them."""

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import nmt
from nmt.cli import main
from nmt.decoding.load import LoadedModel
from nmt.errors import UserError
from tests.unit.small_models import LINES, log_probabilities, make_model, make_tokenizer
from tests.unit.tiny_run import STEP, write_tiny_run

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
needs_ctranslate2 = pytest.mark.skipif(not find_spec("ctranslate2"), reason="needs the extra ctranslate2")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_run(tmp_path_factory.mktemp("outputs") / "multi30k")


@pytest.fixture(scope="module")
def model(run_folder: Path) -> LoadedModel:
    return nmt.load(run_folder, device="cpu", precision="fp32", threads=1)


def texts(found: list[nmt.Translation]) -> list[list[str]]:
    return [[candidate.text for candidate in each.candidates] for each in found]


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_imports_neither_torch_nor_hydra() -> None:
    program = (
        "import sys, nmt; dir(nmt); nmt.UserError; print([n for n in ('torch', 'hydra', 'numpy') if n in sys.modules])"
    )
    assert run_python(program) == "[]\n"


@pytest.mark.slow
def test_a_model_translates_without_what_is_slow_to_import(run_folder: Path) -> None:
    slow = ("hydra", "sacremoses", "torch._dynamo")
    program = f"import sys, nmt; nmt.load({str(run_folder)!r}).translate(['a dog'])"
    assert run_python(f"{program}; print([name for name in {slow} if name in sys.modules])") == "[]\n"


def test_every_promised_name_exists_and_is_described() -> None:
    for name in nmt.__all__:
        assert getattr(nmt, name).__name__ == name
        assert name in dir(nmt)
        assert f"`{name}`" in DOCUMENT or f"nmt.{name}" in DOCUMENT
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        nmt.lode  # type: ignore[attr-defined]  # noqa: B018


def test_a_run_its_checkpoints_and_the_command_line_translate_alike(
    model: LoadedModel, run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model.languages == ("en", "de")
    expected = texts(model.translate(LINES))
    step = nmt.load(run_folder / "checkpoints" / f"step-{STEP:08d}", precision="fp32")
    last = nmt.load(str(run_folder), checkpoint="last", precision="fp32")
    assert texts(step.translate(LINES)) == texts(last.translate(LINES)) == expected
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    words = [f"name={run_folder.name}", f"paths.outputs={run_folder.parent}", f"input={tmp_path / 'text'}"]
    words += ["decoding.beam=3", "decoding.extra_length=8", "runtime.precision=fp32"]
    assert main(["translate", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [candidates[0] for candidates in expected]


def test_options_change_one_call_only(model: LoadedModel) -> None:
    before = texts(model.translate(LINES))
    wide = model.translate(LINES, beam=5, nbest=4, alpha=1.0)
    assert [len(each.candidates) for each in wide] == [4] * len(LINES)
    assert [[c.score for c in each.candidates] for each in wide] == [
        sorted((c.score for c in each.candidates), reverse=True) for each in wide
    ]
    assert texts(model.translate(LINES)) == before
    assert model.translate([]) == []
    assert model.translate(["", "  "])[1].text == ""


def test_scores_are_the_sums_of_the_log_probabilities_of_a_full_pass(model: LoadedModel) -> None:
    tokenizer = make_tokenizer()
    plain = make_model(tokenizer)
    pairs = [(LINES[0], LINES[3]), (LINES[1], LINES[2])]
    for (source, target), found in zip(pairs, model.score(pairs), strict=True):
        expected = log_probabilities(plain, tokenizer.encode_source([source])[0], tokenizer.encode_target([target])[0])
        assert found.tokens == len(expected)
        assert found.log_probability == pytest.approx(float(expected.sum()), rel=1e-4)


def test_attention_has_a_distribution_over_the_source_for_each_piece(model: LoadedModel) -> None:
    found = model.attention(LINES[0], LINES[1])
    assert found.cross.shape == (2, 4, len(found.target), len(found.source))
    np.testing.assert_allclose(found.cross.sum(-1), 1, rtol=1e-5)


def test_mistakes_are_named(model: LoadedModel, run_folder: Path, tmp_path: Path) -> None:
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("no option bean; did you mean beam", lambda: model.translate(LINES, bean=3)),
        ("strategy=3 is not one of beam, sample, mbr", lambda: model.translate(LINES, strategy=3)),
        ("decoding.beam must be a whole number, not 1.5", lambda: model.translate(LINES, beam=1.5)),
        ("decoding.alignments must be true or false, not 'yes'", lambda: model.translate(LINES, alignments="yes")),
        ("cannot be interpreted as an integer", lambda: model.translate(LINES, seed=1.5)),  # type: ignore[arg-type]
        ("decoding.beam=0 must be at least 1", lambda: model.translate(LINES, beam=0)),
        (r"top_k and top_p are for samples", lambda: model.translate(LINES, temperature=0.5)),
        ("a list of lines", lambda: model.translate("a dog")),
        ("is no text but has the type bytes", lambda: model.translate([b"a dog"])),  # type: ignore[list-item]
        ("terms are a tuple of texts", lambda: nmt.Request("a dog", terms="Hund")),  # type: ignore[arg-type]
        ("is no pair of texts", lambda: model.score(["ab"])),  # type: ignore[list-item]
        ("count=0 must be at least 1", lambda: model.next_words("a dog", count=0)),
        ("load it in each process", lambda: pickle.dumps(model)),
        ("there is no folder .*nowhere", lambda: nmt.load(tmp_path / "nowhere")),
        ("neither a run nor a checkpoint", lambda: nmt.load(run_folder.parent)),
    ]
    for message, call in wrong:
        with pytest.raises((TypeError, UserError), match=message):
            call()


def use_in_threads(model: LoadedModel, calls: list[Callable[[LoadedModel], object]]) -> None:
    """Compare calls from eight threads, all at the same time, with the same calls one after the other."""
    expected = [call(model) for call in calls]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda call: call(model), calls * 4)) == expected * 4


CALLS: list[Callable[[LoadedModel], object]] = [
    lambda model: texts(model.translate(LINES)),
    lambda model: texts(model.translate(LINES[:2], beam=5, nbest=5)),
    lambda model: texts(model.translate(LINES, beam=1, alpha=0.0)),
    lambda model: [each.tokens for each in model.score([(LINES[0], LINES[1])])],
]


def test_threads_get_the_results_that_calls_in_turn_get(run_folder: Path) -> None:
    sample: Callable[[LoadedModel], object] = lambda model: texts(model.translate(LINES, strategy="sample", seed=3))  # noqa: E731
    attend: Callable[[LoadedModel], object] = lambda model: model.attention(LINES[0], LINES[1]).cross.round(4).tolist()  # noqa: E731
    use_in_threads(nmt.load(run_folder, device="cpu", precision="fp32", threads=2), [*CALLS, sample, attend])


@needs_ctranslate2
def test_an_export_translates_scores_and_serves_threads(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    words = [f"name={run_folder.name}", f"paths.outputs={run_folder.parent}", f"input={tmp_path / 'text'}"]
    assert main(["export", *words, f"export.folder={tmp_path / 'export'}"]) == 0
    export, run = (nmt.load(path, precision="fp32", device="cpu") for path in (tmp_path / "export", run_folder))
    assert export.languages == run.languages
    assert export.engine.config == run.engine.config
    assert texts(export.translate(LINES)) == texts(run.translate(LINES))
    use_in_threads(export, CALLS)
    with pytest.raises(nmt.UserError, match="engine=ctranslate2 does not show the attention of"):
        export.attention(LINES[0], LINES[1])


def test_the_examples_of_the_document_run(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outputs").symlink_to(run_folder.parent)
    monkeypatch.chdir(tmp_path)
    assert EXAMPLES
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(compile(example, "docs/reference.md", "exec"), names)
    assert isinstance(names["model"], LoadedModel)
