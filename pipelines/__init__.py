"""What runs, and when."""
