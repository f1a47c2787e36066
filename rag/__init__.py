"""Answers questions about paper abstracts; every statement cites the papers that say so."""

__version__ = "0.1.0"
