"""The command ``zlog``: one module per family of verbs, imported when the verb is used.

Data goes to stdout and nothing else does; everything for people goes to stderr.
"""
