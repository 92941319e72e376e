"""Loads every form of the training sets with the trainers that take it."""
