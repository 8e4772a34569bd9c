"""A library for features: whether a device computes correctly, how fast it is, and which settings suit it.

`search` compares candidates for a setting, which `choices` lists and `bench` trains with; `table` prints the result.
`accuracy` compares training steps and operations with float64; `steps` has what all of these need.
"""
