"""Training: samples, their selection and split, and what is published of them."""
