"""Real processes on real stores under faults, with histories that tests.history checks."""
