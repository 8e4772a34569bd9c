"""Data preparation on a cluster of Ray, or on a local one."""
