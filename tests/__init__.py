"""The tests; a package: they share ``tests/support``, and ``python -m tests.x`` runs a part.

What they try is the zlog that is installed.
"""

import sys
from pathlib import Path

_SOURCES = str(Path(__file__).resolve().parents[1])

# Last, since the sources lack what was built; `-m` puts the folder that it runs in first.
if sys.path[0] == _SOURCES:
    sys.path.append(sys.path.pop(0))
