"""Tests of logs as tables."""
