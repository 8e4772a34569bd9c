"""The sizes of an export are those of its files."""

from pathlib import Path

from nmt.features.exports.sizes import sizes_in_words


def test_large_files_are_named_and_small_ones_counted(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for name, size in (("model/a.onnx", 250_000), ("b.wasm", 1_500_000), ("c.js", 30_000), ("model/d.json", 40_000)):
        (tmp_path / name).write_bytes(bytes(size))
    assert sizes_in_words(tmp_path) == "1.8 MB (b.wasm 1.5 MB, model/a.onnx 0.2 MB, 2 smaller files 0.1 MB)"


def test_a_folder_without_small_files_counts_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(100_000))
    assert sizes_in_words(tmp_path) == "0.1 MB (a 0.1 MB)"
