"""Workflows as data: the graph, and every decision about a run. Nothing here reads a database or runs user code."""
