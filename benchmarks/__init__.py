"""How fast Rota is, and beside what: `python -m benchmarks`. See README.md in this folder."""
