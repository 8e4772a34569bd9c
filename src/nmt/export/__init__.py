"""A trained model in the formats of other programs, and engines that translate in int8."""
