"""Constituency parsing (section 6.3 of the paper): trees as the target of the same model.

`trees` reads, cleans, writes and draws bracketed trees. `linearise` turns them into the symbols that the model learns,
and back, with repair. `bracket_score` counts brackets as evalb does.
"""
