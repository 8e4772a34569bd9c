"""The results of the runs of a sweep: a number for a search, and a record per run."""
