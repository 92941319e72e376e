"""The recorder's API: records in, checked; tasks, sessions and training lines out."""
