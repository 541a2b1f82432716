"""Faults, each with real servers and processes: accepted executions are neither lost nor doubled."""
