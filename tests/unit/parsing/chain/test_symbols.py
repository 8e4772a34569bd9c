"""The vocabulary of linearised trees: every symbol is a piece, and none is divided."""

from nmt.parsing.symbols import train_symbols
from nmt.text.tokenizer import Tokenizer


def test_symbols_are_whole_pieces_and_come_back() -> None:
    lines = ["(S (NP XX )NP (VP XX )VP . )S", "(S `` XX '' , : )S"]
    model, seen = train_symbols(lines)
    tokenizer = Tokenizer(train_symbols(["a dog"])[0], model)
    pieces = [tokenizer.target_pieces(ids) for ids in tokenizer.encode_target(lines)]
    assert pieces == [[f"▁{symbol}" for symbol in line.split()] for line in lines]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_target(lines)] == lines
    assert tokenizer.target_size == 4 + len({symbol for line in lines for symbol in line.split()})
    assert (seen.offered, seen.used) == (2, 2)
    assert tokenizer.encode_target(["(NEW"])[0] == [0]


def test_symbols_do_not_depend_on_the_order_of_lines() -> None:
    lines = ["(S XX )S", "(NP . )NP"]
    assert train_symbols(lines)[0] == train_symbols(reversed(lines))[0]
