"""What all rooms stand on: the world behind ``Io``, deadlines, names, codes, locks, the version.

Nothing here knows the protocol of a log.
"""
