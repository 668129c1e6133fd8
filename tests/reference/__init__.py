"""Slow twins: the same results in a few plain lines, for tests to hold the fast code to."""
