"""Sample sessions, made for this project, that the demo runs on."""
