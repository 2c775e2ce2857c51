"""``python -m zlog`` is the command ``zlog``."""

from zlog.cli.main import main

if __name__ == "__main__":
    main()
