"""Sessions: from transcripts of any tool to one normal form."""
