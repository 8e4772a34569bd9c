"""HTML pages about a run, and comparisons of runs."""
