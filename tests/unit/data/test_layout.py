"""The names of a corpus's files are those of format 1, which existing corpora have."""

from pathlib import Path

from nmt.data.layout import CorpusLayout, array_names, text_names

CORPUS = Path(__file__).parents[2] / "golden" / "format-1" / "data" / "toy"


def test_layout_names_the_files_of_an_existing_corpus() -> None:
    layout = CorpusLayout(CORPUS)
    assert layout.manifest.is_file()
    for split in ("train", "valid", "test"):
        names = [*array_names(split, ("en", "de")), *text_names(split, ("en", "de"))]
        assert [name for name in names if not (CORPUS / name).is_file()] == []
        assert layout.store(split).is_file()
        assert layout.texts(split, ("en", "de")) == (CORPUS / f"{split}.en", CORPUS / f"{split}.de")
