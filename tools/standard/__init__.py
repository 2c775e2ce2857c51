"""The standard table of benchmarks: what is run, what is expected of it, and the page it goes to.

``goals`` is the table. ``runs`` makes the stores and runs ``zlog bench`` on them, ``page`` writes
what came of it, ``machine`` says where that was.
"""
