"""Tests of stripes in files."""
