"""Does a log that is appended to and trimmed without end stay as small as it is told to?

Writers append, a reader with a cursor follows them, retention trims what is beyond some megabytes.
Meanwhile the store is looked at from below: objects, keys and bytes that its OSDs say are taken.
"""
