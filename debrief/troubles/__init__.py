"""Troubles: what goes wrong again and again in a repository, and what it costs."""
