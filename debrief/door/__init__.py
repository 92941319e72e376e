"""The door: who may ask the pages and Dagster's UI for what, and what they changed."""
