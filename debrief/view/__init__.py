"""The pages: a small web application that shows what a lake holds. It runs nothing and asks nobody.

Dagster's UI is where things are run, this is where they are read; each links to the other.
"""
