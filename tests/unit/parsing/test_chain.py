"""The chain for constituency trees: bracketed files, training, evaluation, parsing and the report."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.config.data import TREES
from nmt.demo.source import draw
from nmt.parsing.linearise import linearise, parse_line
from nmt.parsing.trees import bracketed, parse_trees
from tests.integration.toy import call
from tests.unit.parsing.random_trees import words

SECTIONS = {"02": 40, "03": 40, "22": 5, "23": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small treebank, the data prepared from it, and a model that has hardly learned."""
    folder = tmp_path_factory.mktemp("parsing")
    drawn = draw(seed=1, train=sum(SECTIONS.values()), valid=0, test=0)["train"]
    trees = [bracketed(each.tree()) for each in drawn]
    for section, count in SECTIONS.items():
        (folder / "wsj" / section).mkdir(parents=True)
        file = folder / "wsj" / section / f"wsj_{section}00.mrg"
        file.write_text("".join(f"( {trees.pop()})\n" for _ in range(count)))
    for command in ("data", "train"):
        done = nmt(folder, command)
        assert done[0] == 0, done
    return folder


def nmt(folder: Path, command: str, *overrides: str) -> tuple[int, str, str]:
    """Run a command on the small treebank; return exit code, output and errors."""
    sections = {"train": "02-03", "valid": "22", "test": "23"}
    text = [f"data.{split}=[{folder}/wsj:{those}]" for split, those in sections.items()]
    done = call([
        command, "experiment=parsing/wsj", "name=parser", "data.corpus=treebank", f"paths.data={folder}/data",
        f"paths.outputs={folder}/outputs", *text,
        "tokenizer.vocab_size=150", "model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2",
        "training.steps=2", "training.batch_tokens=600", "checkpoint=last", "decoding.beam=3",
        "decoding.extra_length=60", "runtime.device=cpu", "runtime.precision=fp32", "runtime.workers=1", *overrides,
    ])  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def evaluated(folder: Path, search: str = "") -> tuple[dict[str, dict[str, object]], Sequence[str], Sequence[str]]:
    """Return the scores of the test set, its sentences and its predicted trees."""
    file = folder / "outputs/parser/eval" / search / "test.json"
    return json.loads(file.read_text()), lines(folder / "data/treebank/test.en"), lines(file.with_name("test.hyp.txt"))


def test_sections_become_sentences_and_symbols(folder: Path) -> None:
    prepared = folder / "data/treebank"
    originals = parse_trees(lines(folder / "wsj/23/wsj_2300.mrg"), "section 23")
    pairs = zip(originals, lines(prepared / "test.en"), lines(prepared / f"test.{TREES}"), strict=True)
    for (_, tree), sentence, symbols in pairs:
        assert sentence.split() == words(tree)
        assert symbols == linearise(tree.children[0])  # type: ignore[arg-type]
    assert len(lines(prepared / "train.en")) == 80


def test_evaluation_repairs_and_scores_trees_and_the_report_draws_them(folder: Path) -> None:
    code, output, _ = nmt(folder, "eval")
    assert code == 0
    record, sentences, trees = evaluated(folder)
    assert {"bracket_f1", "bracket_precision", "bracket_recall", "complete_match"} <= record.keys()
    assert "bleu" not in record
    assert str(record["bracket_f1"]["signature"]).startswith("evalb|params:COLLINS|len:all|")
    assert "|errors:0|" in str(record["bracket_f1"]["signature"])
    assert "repaired: " in output
    for sentence, line in zip(sentences, trees, strict=True):
        assert parse_line(line, sentence.split()) is not None
    assert nmt(folder, "report")[0] == 0
    page = (folder / "outputs/parser/report.html").read_text(encoding="utf-8")
    assert page.count('<pre class="scroll">') >= 2
    assert 'class="invented">' in page.replace('class="invented">red', "")
    assert 'class="missed">' in page.replace('class="missed">Green', "")


def test_translate_prints_a_tree_per_sentence(folder: Path) -> None:
    given = folder / "sentences"
    given.write_text("The old man ( sleeps ) .\n\nWhere is it ?\n")
    written = folder / "trees"
    assert nmt(folder, "translate", f"input={given}", f"output={written}")[0] == 0
    first, empty, last = lines(written)
    assert empty == ""
    assert [words(tree) for _, tree in parse_trees([first, last], "output")] == [
        ["The", "old", "man", "(", "sleeps", ")", "."],
        ["Where", "is", "it", "?"],
    ]
    assert "-LRB- -RRB-" not in first
    assert " -LRB-)" in first
    assert nmt(folder, "translate", f"input={given}", f"output={written}", "translate.format=drawn")[0] == 0
    assert "─ . ?" in written.read_text(encoding="utf-8")


def test_a_bad_file_is_one_line_and_loses_nothing(folder: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (folder / "data/treebank").iterdir()}
    bad = tmp_path / "bad.mrg"
    for text, said in {
        "(S (NP (NN a))\n": "lacks 1 closing bracket",
        "(S (NN a))\n(S\n(NP (-NONE- *)))\n": "bad.mrg, line 2: a tree without words",
    }.items():
        bad.write_text(text)
        code, _, errors = nmt(folder, "data", "name=other", f"data.test=[{bad}]")
        assert (code, len(errors.strip().splitlines())) == (2, 1)
        assert said in errors
        assert str(bad) in errors
    assert {path: path.read_bytes() for path in (folder / "data/treebank").iterdir()} == before


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["data.test=[{folder}/wsj:24]"], "24 has no files that end in"),
        (["data.train=[{folder}/wsj:03-02]"], "wsj:03-02 has no sections: write the smaller number first, 02-03."),
        (["data.test=[{folder}/none/*.mrg]"], "no file matches it"),
        (["data.test=['']"], "data.test is empty: name bracketed files"),
        (["data.test=[{folder}/outputs]"], "has no files that end in .mrg"),
        (["data.target_lang=de"], "data.source=trees cannot be used with data.target_lang=de"),
        (["tokenizer.joint=true"], "tokenizer.joint=true cannot be used with data.target_lang=trees"),
        (["data.pos_tags=some"], "data.pos_tags=some is not one of xx, keep"),
        (["data.source=demo"], "has no effect, because data.source=demo"),
        (
            ["data.source=demo", *(f"data.{split}=[]" for split in ("train", "valid", "test")), "data.source_lang=de"],
            "English and trees, not de and trees",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line(folder: Path, overrides: list[str], said: str) -> None:
    code, _, errors = nmt(folder, "data", "name=other", *(each.format(folder=folder) for each in overrides))
    assert code == 2
    assert said in errors
    assert len(errors.strip().splitlines()) == 1


def test_tree_with_other_words_than_its_sentence_is_refused(folder: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("a dog barks\n" * 60)
        (tmp_path / f"{split}.trees").write_text("(S XX XX )S\n" * 60)
    files = [f"data.{split}=[{tmp_path}/{split}.en,{tmp_path}/{split}.trees]" for split in ("train", "valid", "test")]
    other = ["data.source=files", "data.corpus=files", "tokenizer.vocab_size=18", *files]
    assert nmt(folder, "data", *other)[0] == 0
    code, _, errors = nmt(folder, "eval", *other)
    assert code == 2
    assert "line 1 of" in errors
    assert "not exactly the 3 words of its sentence" in errors
