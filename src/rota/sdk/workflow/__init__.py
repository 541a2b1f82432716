"""Writing workflows: a function is run with symbolic values, and what it does with them becomes a graph."""
