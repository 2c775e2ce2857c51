"""Versions side by side: stores of the first format, and OSDs whose classes differ."""
