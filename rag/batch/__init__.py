"""Many items through one worker: resumable, counted, within a budget."""
