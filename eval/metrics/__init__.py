"""What an item and a run are worth."""
