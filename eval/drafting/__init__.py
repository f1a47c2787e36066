"""Drafts of question-set lines, made from the papers of a store for a person to edit."""
