"""The logs of a store: the directory with their names, and the head object of each log."""
