"""The command ``zlog``. Its commands are in ``commands``, and are imported when they are used.

Only data goes to stdout. Messages for people go to stderr.
"""
