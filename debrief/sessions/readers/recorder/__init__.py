"""The Session Recorder: ``*.record.json`` files, and JSON lines with a record each."""

from __future__ import annotations

from debrief.sessions.readers.recorder.reading import RecordReader

READER = RecordReader()
