"""`python -m nmt`, which torchrun starts too."""

import os
import sys

from nmt.cli import main
from nmt.errors import exit_code
from nmt.launched import launched_processes

if launched_processes() == 1:
    sys.exit(main())
try:
    code = main()
except SystemExit as error:
    code = exit_code(error)
sys.stdout.flush()
sys.stderr.flush()
# threads of gloo may still hold tensors; one that lets go of them while the interpreter ends aborts the process
os._exit(code)
