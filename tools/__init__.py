"""What builds the project's own pages and samples; no part of the wheel."""
