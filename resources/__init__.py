"""Typed configuration of the outside world. What each field means is the library's to say."""
