"""History: partitions, retention, and statistics of deleted executions."""
