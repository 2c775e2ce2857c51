"""Copies of a log that keep positions and times: export files, imports, mirrors.

``pieces`` defines what is copied. ``source`` reads pieces, ``export_file`` stores them, and
``target`` writes them to a log that takes no other appends.
"""
