"""Time and memory of planning an epoch."""
