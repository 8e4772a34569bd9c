"""The stages of `make test-all`."""
