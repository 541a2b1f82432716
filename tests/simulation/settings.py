"""How much the tests simulate."""

from __future__ import annotations

import os

SEEDS = int(os.environ.get("ROTA_SIM_SEEDS", "200"))
"""Seeds on SQLite in all; a long run sets ROTA_SIM_SEEDS."""
POSTGRES_SEEDS = int(os.environ.get("ROTA_SIM_POSTGRES_SEEDS", "25"))
"""Seeds on PostgreSQL: each takes ten times as long, because every statement travels to a server."""
COVERED = [148, 75, 18, 78, 59, 15, 79, *range(100)]
"""Seeds on SQLite that are run until together they have seen everything: first those that are known to see the most,
which `python -m tests.simulation --cover` finds after a change of the engine."""
CHUNK = 10
POSTGRES_CHUNK = 2
