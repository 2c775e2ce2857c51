"""Reads: windows, holes and fills, iterators, columns, times and cursors."""
