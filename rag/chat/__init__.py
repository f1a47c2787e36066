"""A conversation about the papers: typed lines in, answers out, every word of it kept."""
