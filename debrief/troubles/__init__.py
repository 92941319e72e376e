"""Troubles: what recurs in a repository and costs something, by what happened in its sessions."""
