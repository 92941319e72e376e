"""Ask language models: one interface for every provider and for coding agents as models."""
