"""The database's shape, from each version to the next and back."""
