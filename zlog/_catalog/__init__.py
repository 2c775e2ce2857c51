"""Which logs a store has: its directory of names, and the head object of each log."""
