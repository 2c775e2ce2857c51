"""``zlog spark tail`` as a program for spark-submit, with the same arguments."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from zlog.cli.main import command

    command.main(["spark", "tail", *sys.argv[1:]], prog_name="zlog")
