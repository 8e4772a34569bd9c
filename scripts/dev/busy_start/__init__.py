"""What the minutes of a run are worth that was planned on a busy machine."""
