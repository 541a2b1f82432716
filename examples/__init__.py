"""Apps to run, read and copy from."""
