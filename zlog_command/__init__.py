"""The installed command ``zlog``: Ctrl-C ends it without a traceback, also while it imports.

It is outside of the package ``zlog``, whose own import is most of that time.
"""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command itself handles it
    from zlog.cli.main import main as run

    run()
