"""The results of two versions of the code on small fixed cases, compared."""
