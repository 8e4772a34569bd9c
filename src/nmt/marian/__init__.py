"""Marian's files of a model, which one feature writes and another reads."""
