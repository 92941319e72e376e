"""Claude Code's transcripts: reading, conversion and assembly."""

from debrief.sessions.readers.claude_code.reading import ClaudeCodeReader

READER = ClaudeCodeReader()
