"""The time of a training step of two versions of the code, compared."""
