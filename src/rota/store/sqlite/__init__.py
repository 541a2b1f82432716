"""The implementation of `rota.store.port` on SQLite."""
