"""Training sets in the forms that trainers read, in a folder that loads as splits."""
