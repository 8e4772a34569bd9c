"""The sections of check_device.py: what to find out about a device on first contact."""
