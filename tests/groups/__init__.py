"""Tests of zlog.groups: a checker of histories, a simulation, and runs with real processes."""
