"""The commands of `rag eval`, one file each."""
