"""How entries come out of a log: windows, holes and fills, iterators, columns, times, cursors."""
