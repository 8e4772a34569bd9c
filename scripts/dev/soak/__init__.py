"""Hours of training, in which nothing may grow."""
