"""What it costs that waiting threads spin."""
