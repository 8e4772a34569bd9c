"""Tests of the features, in the order of their folders."""
