"""Question sets as files."""
