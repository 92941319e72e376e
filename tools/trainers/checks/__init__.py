"""What is run in the trainers' own environment: recipes, and what came of them."""
