"""The tests need packages that need Python 3.11."""

import sys

if sys.version_info < (3, 11):
    collect_ignore_glob = ["test_*.py"]
