"""How much the tests simulate."""

from __future__ import annotations

import os

SEEDS = int(os.environ.get("ROTA_SIM_SEEDS", "200"))
"""Seeds in all; a long run sets ROTA_SIM_SEEDS."""
COVERED = 100
"""The first of them, which together must have seen everything."""
CHUNK = 10
