"""The only package that contains SQL."""
