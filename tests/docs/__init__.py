"""The documentation is tested: what it shows runs, what it names exists, and what exists is in it."""
