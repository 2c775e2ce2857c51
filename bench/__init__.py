"""Benchmarks of zlog next to raw limits and to other systems; not part of the package.

``python -m bench`` has a command per benchmark; ``bench.table`` runs those of `make bench`.
``testbed`` prepares a part of a store, ``measure`` runs candidates in turns and compares them,
``limits`` runs the C++ program that measures raw limits, and ``results`` prints.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
