"""The vocabulary of linearised trees: every symbol is a piece, and none is divided."""

from pathlib import Path

from nmt.parsing.symbols import train_on_files
from nmt.text.tokenizer import Tokenizer


def test_symbols_are_whole_pieces_and_come_back(tmp_path: Path) -> None:
    lines, files = ["(S (NP XX )NP (VP XX )VP . )S", "(S `` XX '' , : )S"], [tmp_path / name for name in "abc"]
    for file, text in zip(files, (lines, lines[::-1], ["a dog"]), strict=True):
        file.write_text("\n".join(text) + "\n")
    model, seen = train_on_files(files[:1])
    assert train_on_files(files[1:2])[0] == model
    tokenizer = Tokenizer(train_on_files(files[2:])[0], model)
    pieces = [tokenizer.target_pieces(ids) for ids in tokenizer.encode_target(lines)]
    assert pieces == [[f"▁{symbol}" for symbol in line.split()] for line in lines]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_target(lines)] == lines
    assert tokenizer.target_size == 4 + len({symbol for line in lines for symbol in line.split()})
    assert (seen.offered, seen.used) == (2, 2)
    assert tokenizer.encode_target(["(NEW"])[0] == [0]
