"""Compares zlog with other logs, in turns on one machine, with the same durability."""
