"""Validity: how well verdicts and the order agree with labels and benchmark results."""
