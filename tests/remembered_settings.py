"""Importing this composes and remembers settings, so that copies of the process need not."""

import nmt.config.compose
from tests.quick_settings import make_settings_quick

make_settings_quick()
nmt.config.compose.compose(["data=files", "data.corpus=toy"])
