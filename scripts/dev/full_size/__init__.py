"""Data preparation at full size: time and memory of each task."""
