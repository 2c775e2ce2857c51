"""Trims single positions, all positions below one, or what a log's retention does not keep."""
