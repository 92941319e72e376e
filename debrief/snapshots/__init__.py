"""Snapshots: which prompts and which tool and model a session ran with."""
