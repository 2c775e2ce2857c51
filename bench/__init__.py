"""Benchmarks that compare zlog with raw limits and other systems; not part of the package.

``python -m bench`` has one command per benchmark. ``bench.table`` runs those of `make bench`,
``testbed`` prepares a part of a store, ``measure`` runs candidates in turns and compares them,
``limits`` runs the C++ program that measures raw limits, and ``results`` prints the results.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
