"""Make Harbor tasks from sessions: a request, a repository at its base, and a proven check."""
