"""Starting threads of the library."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable

from zlog._base.refusals import from_code


def start_thread(run: Callable[[], object], name: str) -> None:
    """Run a function in a thread that does not keep the process alive.

    Raises:
        StoreUnavailable: the system allows no more threads.
    """
    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError:
        raise from_code(-errno.EAGAIN, f"can't start the thread {name}") from None
