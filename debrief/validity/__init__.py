"""Validity: whether verdicts and the order agree with those who know how sessions ended."""
