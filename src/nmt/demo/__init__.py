"""The embedded demo language: sentences and trees from a grammar, and the whole chain on them."""
