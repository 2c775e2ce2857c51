"""Copies of a log that keep positions and times: export files, imports, mirrors.

``pieces`` is what travels, ``source`` reads it, ``export_file`` stores it, and ``target`` writes it
to a log that takes appends from nowhere else.
"""
