"""Scoring: six dimensions for a session of any length."""
