"""What it costs that waiting threads stay awake."""
