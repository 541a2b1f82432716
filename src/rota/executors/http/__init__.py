"""Jobs that are HTTP requests."""
