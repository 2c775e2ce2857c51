"""Tests of ceph-dev/cluster, run as its users run it."""
