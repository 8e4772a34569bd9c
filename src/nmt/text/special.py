"""Ids of the four special tokens, the same in every vocabulary."""

UNK = 0
PAD = 1
BOS = 2
EOS = 3
