"""Count what a training step would do on a GPU, on a machine without one."""
