"""A library for features: terms that must stand in translations."""
