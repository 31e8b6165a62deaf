"""What holds for every test."""

from __future__ import annotations

import os
import tempfile

# Runs that tests make are not entered into the store of whoever runs them.
_directory = tempfile.TemporaryDirectory(prefix="fmviz-tests-")
os.environ["FMVIZ_STORE"] = os.path.join(_directory.name, "runs.sqlite")
