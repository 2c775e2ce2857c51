"""The tests; a package: they share ``tests/support``, and ``python -m tests.x`` runs a part."""

from tools import sync_facade

sync_facade.write()  # zlog.sync, before anything imports what may be older than its source
