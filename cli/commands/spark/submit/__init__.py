"""Programs for spark-submit; ``zlog spark path`` prints their paths.

Python searches a program's folder first for imports, so this folder must contain nothing else.
"""
