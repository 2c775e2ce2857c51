"""The tests; a package: they share ``tests/support``, and ``python -m tests.x`` runs a part."""
