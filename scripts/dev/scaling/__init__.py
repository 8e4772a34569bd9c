"""The speed of training on many GPUs, estimated."""
