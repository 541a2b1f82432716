"""History: partitions, retention, and what is left of what went."""
