"""The installed command ``zlog``: no traceback if its imports fail or Ctrl-C ends them.

It is outside of the package ``zlog``, whose own import is most of that time.
"""

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command itself handles it
    try:
        from zlog.cli.main import main as run
    except ImportError as error:
        if "cannot open shared object" not in str(error):
            raise
        sys.exit(
            f"zlog: zlog's compiled part can't be loaded ({error}). Install the system's package of"
            " this library, such as liblmdb0 (Debian, Ubuntu), lmdb-libs (RPM) or lmdb (Alpine)."
        )
    run()
