"""Evaluation of answers and retrieval."""
