"""The dashboard in a real browser, on data from real workers. `python -m tests.browser` serves them."""
