"""Judge the change that a session made, by instructions in ``judges/*.md``."""
