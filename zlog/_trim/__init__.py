"""Trims: of one position, of all positions below one, and by retention."""
