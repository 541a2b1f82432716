"""How much is measured: everything in a run is bounded by one of these numbers."""

from __future__ import annotations

import msgspec


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Counts are jobs unless their name says otherwise."""

    rounds: int
    slow_rounds: int
    """Of what takes long, or hardly varies."""
    raw_s: float
    bulk: tuple[int, int]
    single_s: float
    drain: int
    drain_sync: int
    together_s: float
    pickups: int
    results: int
    idle_s: float
    growth: int
    history: tuple[int, int]
    backlog: tuple[int, int, int]
    scheduled: int
    cycles: int
    peer: int
    budget_s: float = 500.0
    """After so long no further round is begun."""
    limit_s: float = 120.0
    """How long any one wait may take before its section is given up."""


FULL = Size(
    rounds=3,
    slow_rounds=2,
    raw_s=1.0,
    bulk=(10_000, 50_000),
    single_s=2.0,
    drain=220_000,
    drain_sync=120_000,
    together_s=6.0,
    pickups=300,
    results=200,
    idle_s=10.0,
    growth=80_000,
    history=(100_000, 1_000_000),
    backlog=(1_000, 100_000, 1_000_000),
    scheduled=1_000_000,
    cycles=300,
    peer=20_000,
)
QUICK = Size(
    rounds=1,
    slow_rounds=1,
    raw_s=0.5,
    bulk=(10_000, 50_000),
    single_s=1.0,
    drain=40_000,
    drain_sync=20_000,
    together_s=2.0,
    pickups=100,
    results=50,
    idle_s=2.0,
    growth=20_000,
    history=(10_000, 100_000),
    backlog=(1_000, 10_000, 100_000),
    scheduled=100_000,
    cycles=100,
    peer=5_000,
)
SMOKE = Size(
    rounds=1,
    slow_rounds=1,
    raw_s=0.05,
    bulk=(100, 500),
    single_s=0.05,
    drain=500,
    drain_sync=200,
    together_s=0.2,
    pickups=5,
    results=3,
    idle_s=0.3,
    growth=300,
    history=(200, 2_000),
    backlog=(200, 400, 1_000),
    scheduled=1_000,
    cycles=2,
    peer=100,
    limit_s=30.0,
)
