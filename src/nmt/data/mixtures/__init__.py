"""Training on several corpora at once, each with settings, a tag and a weight of its own, and in stages."""
