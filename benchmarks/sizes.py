"""How much is measured: everything in a run is bounded by one of these numbers."""

from __future__ import annotations

import msgspec


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Counts are jobs unless their name says otherwise."""

    rounds: int
    slow_rounds: int
    """Of sections that take long or hardly vary."""
    raw_s: float
    bulk: tuple[int, int]
    single_s: float
    drain: int
    drain_sync: int
    burst: int
    """Executions that arrive at once, while the worker has nothing else to do."""
    together_s: float
    pickups: int
    results: int
    idle_s: float
    half_s: float
    samples: int
    """Delays that are kept of the executions that arrive at half of the drain rate."""
    busy: int
    """The backlog that keeps the workers busy while high-priority executions arrive."""
    arrivals: int
    free_s: float
    snapshot_s: float
    crowd: int
    crowd_s: float
    fleet: int
    fleet_s: float
    turns: int
    """No-ops that each executor runs one after another."""
    errands: int
    """How many the fastest executor is given at once."""
    flood_mb: int
    growth: int
    history: tuple[int, int]
    server_history: tuple[int, int]
    """The same for a server, which is meant to hold more than a file."""
    backlog: tuple[int, int, int]
    scheduled: int
    upcoming: int
    """Next ticks that are computed."""
    schedules: int
    steady_s: float
    cycles: int
    chain: int
    """Steps, each of which waits for the one before it; a workflow has at most 1,000."""
    fan: int
    """Items of a map whose results one step takes."""
    wide: int
    """Items of a map as wide as a map may be by default."""
    runs: int
    """Small runs that are open at once."""
    subscribers: int
    """Jobs that one event starts."""
    waits: int
    """Runs that one event wakes."""
    files: int
    """In a folder that is watched."""
    sleepers: int
    """Steps that sleep for a month."""
    flood: int
    """Executions that a client sends as lines while others read."""
    streams: int
    """Open streams of one server; it allows 1,000."""
    callers: int
    """Requests that wait for an execution at once."""
    pages: int
    """Executions that have ended, of which the dashboard shows some."""
    budget_s: float = 500.0
    """After this time no further round is begun."""
    limit_s: float = 120.0
    """How long any one wait may take before its section is given up."""

    def on(self, kind: str) -> Size:
        """As it is for this kind of database."""
        return self if kind == "sqlite" else msgspec.structs.replace(self, history=self.server_history)


FULL = Size(
    rounds=3,
    slow_rounds=2,
    raw_s=1.0,
    bulk=(10_000, 50_000),
    single_s=2.0,
    drain=220_000,
    drain_sync=120_000,
    burst=4_000,
    together_s=6.0,
    pickups=300,
    results=200,
    idle_s=10.0,
    half_s=10.0,
    samples=4_000,
    busy=500_000,
    arrivals=200,
    free_s=60.0,
    snapshot_s=60.0,
    crowd=10_000,
    crowd_s=20.0,
    fleet=1_000,
    fleet_s=20.0,
    turns=100,
    errands=10_000,
    flood_mb=100,
    growth=80_000,
    history=(100_000, 1_000_000),
    server_history=(1_000_000, 10_000_000),
    backlog=(1_000, 100_000, 1_000_000),
    scheduled=1_000_000,
    upcoming=1_000_000,
    schedules=1_000_000,
    steady_s=30.0,
    cycles=300,
    chain=1_000,
    fan=10_000,
    wide=100_000,
    runs=1_000,
    subscribers=1_000,
    waits=10_000,
    files=10_000,
    sleepers=1_000_000,
    flood=1_000_000,
    streams=1_000,
    callers=5_000,
    pages=1_000_000,
)
QUICK = Size(
    rounds=1,
    slow_rounds=1,
    raw_s=0.5,
    bulk=(10_000, 50_000),
    single_s=1.0,
    drain=40_000,
    drain_sync=20_000,
    burst=4_000,
    together_s=2.0,
    pickups=100,
    results=50,
    idle_s=2.0,
    half_s=3.0,
    samples=1_000,
    busy=120_000,
    arrivals=40,
    free_s=5.0,
    snapshot_s=10.0,
    crowd=2_000,
    crowd_s=5.0,
    fleet=200,
    fleet_s=5.0,
    turns=50,
    errands=4_000,
    flood_mb=20,
    growth=20_000,
    history=(10_000, 100_000),
    server_history=(10_000, 100_000),
    backlog=(1_000, 10_000, 100_000),
    scheduled=100_000,
    upcoming=200_000,
    schedules=50_000,
    steady_s=8.0,
    cycles=100,
    chain=200,
    fan=2_000,
    wide=20_000,
    runs=200,
    subscribers=1_000,
    waits=1_000,
    files=10_000,
    sleepers=20_000,
    flood=100_000,
    streams=1_000,
    callers=1_000,
    pages=100_000,
)
SMOKE = Size(
    rounds=1,
    slow_rounds=1,
    raw_s=0.05,
    bulk=(100, 500),
    single_s=0.05,
    drain=500,
    drain_sync=200,
    burst=100,
    together_s=0.2,
    pickups=5,
    results=3,
    idle_s=0.3,
    half_s=0.2,
    samples=20,
    busy=8_000,
    arrivals=3,
    free_s=0.2,
    snapshot_s=0.4,
    crowd=50,
    crowd_s=0.4,
    fleet=3,
    fleet_s=0.4,
    turns=3,
    errands=600,
    flood_mb=1,
    growth=300,
    history=(200, 2_000),
    server_history=(200, 2_000),
    backlog=(200, 400, 1_000),
    scheduled=1_000,
    upcoming=2_000,
    schedules=300,
    steady_s=1.5,
    cycles=2,
    chain=20,
    fan=600,
    wide=5_000,
    runs=20,
    subscribers=150,
    waits=150,
    files=50,
    sleepers=1_000,
    flood=2_000,
    streams=20,
    callers=20,
    pages=200,
    limit_s=30.0,
)
