"""Stages: what each table is made from, how, and whether it is current.

A stage is made of plain functions, free of Dagster: ``make`` returns a partition's rows, and
``TableStage`` says with them whether there is anything to make. The assets call them and say in
Dagster's terms what they made; ``debrief run`` asks them whether there is anything to do at all.
"""
