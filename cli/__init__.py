"""The command ``zlog``: its verbs are in ``verbs``, imported when they are used.

Data goes to stdout and nothing else does; everything for people goes to stderr.
"""
