"""Logs as Arrow tables, and copies of logs in tables."""
