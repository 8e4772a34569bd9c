"""Random changes of the training text, drawn anew in each epoch."""
