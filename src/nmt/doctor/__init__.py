"""What this machine has, and which features are off."""
