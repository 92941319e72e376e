"""The Session Recorder: what a person changed, exactly, as a record that provably rebuilds it."""
