"""The command ``zlog``: its commands are in ``commands``, imported when they are used.

Data goes to stdout and nothing else does; everything for people goes to stderr.
"""
