"""The week in one page: what was done, what it cost, what failed, what changed."""
