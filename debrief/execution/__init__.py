"""Executed outcomes: rebuild a session's change on its base commit and run its checks on both."""
