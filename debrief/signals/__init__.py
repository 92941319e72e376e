"""What a session shows without a model: commands, checks, hazards, its end, a person's words."""
