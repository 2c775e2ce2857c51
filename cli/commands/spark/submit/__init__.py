"""Programs for spark-submit; ``zlog spark path`` prints their paths.

Python puts a program's folder first on its module path, so this folder must have nothing else.
"""
