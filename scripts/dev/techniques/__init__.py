"""What helps with little text."""
