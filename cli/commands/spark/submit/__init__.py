"""Programs for spark-submit; ``zlog spark path`` prints their paths.

Python searches the folder of a program first when it imports modules, so this folder must contain
nothing else.
"""
