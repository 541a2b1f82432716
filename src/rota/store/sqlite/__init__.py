"""SQLite behind `rota.store.port`."""
