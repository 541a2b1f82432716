"""The Python API: the names that users import."""
