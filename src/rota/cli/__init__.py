"""The command line: the composition root."""
