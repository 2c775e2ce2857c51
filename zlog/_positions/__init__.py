"""Finds the next position of a log: asks its sequencer, or its objects if it has none."""
