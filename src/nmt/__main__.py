"""`python -m nmt`, which torchrun starts too."""

import sys

from nmt.cli import main

sys.exit(main())
