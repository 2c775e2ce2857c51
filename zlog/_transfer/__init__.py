"""Copies a log with its positions and times, to an export file or to a mirror.

``pieces`` defines what is copied. ``source`` reads pieces, ``export_file`` stores them, and
``target`` writes them to a log that takes no other appends.
"""
