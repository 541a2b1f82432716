"""Log lines, progress and checkpoints of attempts."""
