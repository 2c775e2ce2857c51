"""What all rooms stand on: the world behind ``Io``, deadlines, names, codes, locks.

Nothing here knows the protocol of a log.
"""
