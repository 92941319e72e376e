"""Questions over all sessions: asked of each one, and put together into one cited answer."""
