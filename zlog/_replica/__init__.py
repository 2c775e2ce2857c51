"""The replicas of an object: how to read a sound one, and how to repair a damaged one."""
