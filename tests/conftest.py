"""The environment of all tests: pytest-xdist sets COLUMNS, which would make every table narrow."""

import os

os.environ.pop("COLUMNS", None)
