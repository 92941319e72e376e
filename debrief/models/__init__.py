"""Models: the one door to any language model."""
