"""Appends: grants, rounds, retries, new stripes, exclusive writers, and exactly-once appends."""
