"""The next position of a log: from its sequencer, or from its objects if it has none."""
