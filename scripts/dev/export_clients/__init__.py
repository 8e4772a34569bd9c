"""Compare exports with the programs that they are for."""
