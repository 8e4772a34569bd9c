"""What this machine has, and which optional packages are missing."""
