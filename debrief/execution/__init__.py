"""Outcomes by running: a session's change made again from its base, and its checks run on both."""
