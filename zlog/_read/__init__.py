"""Reads of a log: windows, holes and fills, iterators, columns, times and cursors."""
