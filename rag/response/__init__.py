"""Peer reviews -> a response to each concern: cited statements, or the papers that may help."""
