"""How entries leave a log: trims of one position and of all below one, and retention."""
