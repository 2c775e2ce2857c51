"""What all rooms stand on: ``Io``, deadlines, names, codes, addresses, the version.

Nothing here knows the protocol of a log.
"""
