"""Retrieval test collections, TREC files and rankings."""
