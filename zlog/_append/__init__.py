"""Appends: grants, rounds of writes, retries, new stripes, exclusive writers, exactly once."""
