"""Harbor tasks of sessions: a request, a repository to begin from, and a check that is proven."""
