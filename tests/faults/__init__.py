"""Faults of the database, each with a real server: what was accepted is neither lost nor doubled."""
