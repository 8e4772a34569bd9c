"""Importing this compiles the operations in C, so that copies of the process need not compile them again."""

from nmt.model.kernels.c import compile as compile_c
from nmt.model.kernels.c import library

library.use_operations(library.DEFINITIONS)
library.use_operations(())


def compile_again(options: tuple[str, ...]) -> bool:
    """Compile the operations with these options in this process; return whether that failed."""
    compile_c.OPTIONS = options
    library._library.cache_clear()
    return not library.use_operations(library.DEFINITIONS)
