"""Rubrics: criteria mined from sessions, consolidated, and judged."""
