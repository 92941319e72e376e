"""Read transcripts of any coding agent into one normal form."""
