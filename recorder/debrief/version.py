"""The version of the recorder and of Debrief, which are released together."""

VERSION = "0.1.0"
