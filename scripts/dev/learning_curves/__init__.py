"""The runs from which forecasts learn."""
