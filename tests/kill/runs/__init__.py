"""Runs of workflows whose workers are killed: each ends with the result that it has without kills."""
