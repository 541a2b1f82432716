"""Workflows: the graph as data and the decisions about a run."""
