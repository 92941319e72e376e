"""Export training sets in the forms that trainers read."""
