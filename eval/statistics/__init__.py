"""Estimates with intervals, and tests; nothing here knows of questions."""
