"""Hostile and odd input for everything that reads: each ends in a result or in one clear line."""
