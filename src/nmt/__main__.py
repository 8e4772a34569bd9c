"""`python -m nmt`, which torchrun starts too."""

import os
import sys

from nmt.cli import main
from nmt.launched import launched_processes

if launched_processes() == 1:
    sys.exit(main())
try:
    code = main()
except SystemExit as error:
    code = error.code if isinstance(error.code, int) else 1
sys.stdout.flush()
sys.stderr.flush()
# threads of gloo may still hold tensors; one that lets go of them while the interpreter ends aborts the process
os._exit(code)
