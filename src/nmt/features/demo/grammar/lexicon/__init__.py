"""The words of the demo grammar, in tables."""
