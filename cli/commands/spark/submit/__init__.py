"""Programs for spark-submit; ``zlog spark path`` tells where they are.

Python puts a program's folder first on its module path, so there is nothing else in this one.
"""
