"""The command-line program ``zlog``. It imports a command from ``commands`` when it runs it.

Commands write only data to stdout, and messages for people to stderr.
"""
