"""Jobs that run in processes of their own: isolated functions and commands."""
