"""Recurring friction: what goes wrong in several sessions of a repository, and what stops it."""
