"""Importing this compiles the operations in C, so that copies of the process need not compile them again."""

from nmt.model.kernels.c.library import use_operations

use_operations(True)
use_operations(False)
