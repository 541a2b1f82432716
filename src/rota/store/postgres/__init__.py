"""PostgreSQL behind `rota.store.port`."""
