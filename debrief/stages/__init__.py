"""Stages: each declared once, by what it reads and how its rows are made.

A declaration is free of Dagster. Assets are made of it, and ``debrief run`` asks it whether there
is anything to do at all.
"""
