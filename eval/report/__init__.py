"""A run as a page that needs nothing else, and as Markdown for a pull request."""
