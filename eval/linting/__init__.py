"""What is wrong with a question set, line by line, before a run is spent on it."""
