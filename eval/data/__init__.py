"""The demo corpus and its smoke questions."""
