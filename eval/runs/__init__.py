"""Run directories: made, read, continued and compared."""
