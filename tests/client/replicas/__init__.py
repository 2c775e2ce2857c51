"""Reads and repairs of objects with damaged replicas."""
