"""Real processes on real stores under faults, with histories that zlog.testing judges."""
