"""One module a noun of the API."""
