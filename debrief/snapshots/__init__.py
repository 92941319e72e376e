"""Snapshots: the prompts, tool and model that each session ran with."""
