"""What `rota` promises to type checkers: a sample project with the right types, and one with many mistakes."""
