"""Judging: what each judge says of each session's change."""
