"""Seeded faults in every command, and whether the command repeated after each makes what it should."""
