"""The loops that carry executions from row to row."""
