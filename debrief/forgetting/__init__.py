"""Delete sessions from every place where Debrief keeps them."""
