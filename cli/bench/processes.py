"""Starting Python again, for servers beside a benchmark."""

from __future__ import annotations

import sys


def python(code: str) -> list[str]:
    """Return the command that runs some code with the modules of this very Python.

    Plain ``python -c`` would look for modules in the current directory first.
    """
    return [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
