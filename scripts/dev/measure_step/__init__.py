"""The time and memory of a training step."""
