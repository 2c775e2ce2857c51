"""Replicas of one object: read a sound replica, and repair a damaged one."""
