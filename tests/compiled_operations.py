"""Importing this prepares a process to be copied: copies need not compile the operations in C again.

Nor does the garbage collector of each copy search, and so copy to memory of its own, all that was imported before.
"""

import gc

from nmt.model.kernels.c import compile as compile_c
from nmt.model.kernels.c import library

library.use_operations(library.DEFINITIONS)
library.use_operations(())
gc.collect()
gc.freeze()


def compile_again(options: tuple[str, ...]) -> bool:
    """Compile the operations with these options in this process; return whether that failed."""
    compile_c.OPTIONS = options
    library._library.cache_clear()
    return not library.use_operations(library.DEFINITIONS)
