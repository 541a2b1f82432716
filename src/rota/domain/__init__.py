"""The pure part of Rota: what should happen, decided from values alone."""
